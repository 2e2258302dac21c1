"""Networks as graphs of NetworkX, and back."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import networkx

from .scenario import Scenario, option


def of(
    network: tuple[
        list[tuple[float, float]], list[float], list[tuple[str, int, list[int]]], list[str]
    ],
    nodes: int,
    at_least: float,
) -> networkx.DiGraph:
    """The graph of a network; see `Scenario.graph`."""
    places, delivery, transfers, names = network
    graph = networkx.DiGraph()
    for node in range(nodes):
        place = {"pos": places[node]} if places else {}
        name = {"name": names[node]} if names else {}
        graph.add_node(node, **place, **name)
    for start in range(nodes):
        for end in range(nodes):
            prr = delivery[start * nodes + end]
            if start != end and prr >= at_least:
                graph.add_edge(start, end, prr=prr)
    graph.graph["transfers"] = [
        {"name": name, "source": source, "receivers": receivers}
        for name, source, receivers in transfers
    ]
    return graph


def scenario(
    graph: networkx.Graph,
    *,
    source: Hashable,
    receivers: Iterable[Hashable],
    bytes: int | str,
    set: Mapping[str, Any] | None = None,
    prr: str = "prr",
) -> Scenario:
    """A scenario on the links of a graph, whose edges have a delivery ratio under the name `prr` (1 where they have none).

    Nodes get numbers in the order of the graph, and the title says which are the ends. An edge of an undirected graph is a link both
    ways.

    >>> import networkx
    >>> line = networkx.path_graph(["a", "b", "c"])
    >>> networkx.set_edge_attributes(line, 0.8, "prr")
    >>> made = scenario(line, source="a", receivers=["c"], bytes="20 kB", set={"protocol.links": "true"})
    >>> made.nodes, made.run(seed=1).complete
    (3, True)
    """
    names = list(graph)
    places = {name: place for place, name in enumerate(names)}
    links = [[0.0] * len(names) for _ in names]
    for start, end, ratio in graph.edges(data=prr, default=1.0):
        links[places[start]][places[end]] = float(ratio)
        if not graph.is_directed():
            links[places[end]][places[start]] = float(ratio)
    ends = [places[name] for name in receivers]
    size = bytes if isinstance(bytes, str) else f"{bytes} B"
    text = (
        f"[network]\nlinks = {json.dumps(links)}\n"
        f"[[transfer]]\nsource = {places[source]}\nreceivers = {option(ends)}\n"
        f"bytes = {json.dumps(size)}\n"
    )
    return Scenario.parse(text, name="graph", set=set)
