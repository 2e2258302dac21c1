"""Goal: a network goes to NetworkX and back, and a run's events are frames."""

import chappe
import chappe.graph
import networkx
import polars
import pytest


def test_a_network_is_a_graph(small):
    scenario = chappe.Scenario.read(small)
    graph = scenario.graph(1)
    assert graph.number_of_nodes() == scenario.nodes == 8
    assert all(0.01 <= ratio <= 1 for _, _, ratio in graph.edges(data="prr"))
    assert len(networkx.get_node_attributes(graph, "pos")) == 8
    (transfer,) = graph.graph["transfers"]
    assert transfer["source"] == 0 and len(transfer["receivers"]) == 3
    assert all(networkx.has_path(graph, 0, end) for end in transfer["receivers"])
    strong = scenario.graph(1, at_least=0.9)
    assert set(strong.edges) <= set(graph.edges)
    assert scenario.graph(2).nodes(data=True) != graph.nodes(data=True)


def test_nodes_keep_the_names_of_their_file(tmp_path):
    links = "src,dst,pdr\ngate,attic,0.9\nattic,gate,0.8\n"
    (tmp_path / "links.csv").write_text(links)
    path = tmp_path / "named.toml"
    path.write_text(
        '[network]\nfile = "links.csv"\n'
        '[[transfer]]\nsource = "gate"\nreceivers = ["attic"]\nbytes = "5 kB"\n'
    )
    scenario = chappe.Scenario.read(path)
    names = networkx.get_node_attributes(scenario.graph(1), "name")
    assert sorted(names.values()) == ["attic", "gate"]
    (row,) = scenario.run(1).frame().select("source_name", "sink_name").rows()
    assert row == ("gate", "attic")
    assert (names[scenario.run(1).frame()["source"][0]]) == "gate"


def test_a_network_of_walkers_moves():
    walk = (
        '[network]\ngenerator = "random-waypoint"\nnodes = 6\narea = ["150 m", "150 m"]\n'
        'speed = ["1 m/s", "3 m/s"]\n[mac]\naccess = "edca"\n'
        '[protocol]\nsystem = "dpclo"\nvariant = "improved"\nprobing = "20 s"\n'
        '[[transfer]]\nsource = 0\nreceivers = [5]\nbytes = "5 kB"\n[run]\nlimit = "60 s"\n'
    )
    scenario = chappe.Scenario.parse(walk)
    assert scenario.run(1).digest == scenario.run(1).digest
    assert scenario.run(1).digest != scenario.run(2).digest
    still = {"network": '{ generator = "random", nodes = 6, area = ["150 m", "150 m"] }'}
    assert chappe.Scenario.parse(walk, set=still).run(1).digest != scenario.run(1).digest
    with pytest.raises(chappe.InputError, match="nodes move here"):
        chappe.Scenario.parse(walk, set={"protocol": '{ system = "pacifier" }'})


def test_a_graph_is_a_scenario_with_its_links():
    graph = networkx.DiGraph()
    graph.add_edge("hut", "mast", prr=0.75)
    graph.add_edge("mast", "hut", prr=0.5)
    graph.add_edge("mast", "town")
    graph.add_edge("town", "mast", prr=0.25)
    made = chappe.graph.scenario(graph, source="hut", receivers=["town"], bytes=20_000)
    again = made.graph(1)
    links = {(start, end): ratio for start, end, ratio in again.edges(data="prr")}
    assert links == {(0, 1): 0.75, (1, 0): 0.5, (1, 2): 1.0, (2, 1): 0.25}
    assert made.run(1).complete


def test_mistakes_in_a_graph_are_told():
    line = networkx.path_graph(3)
    with pytest.raises(KeyError):
        chappe.graph.scenario(line, source="nobody", receivers=[2], bytes=1)
    networkx.set_edge_attributes(line, 1.5, "prr")
    with pytest.raises(chappe.InputError):
        chappe.graph.scenario(line, source=0, receivers=[2], bytes=1)


def test_events_are_frames_and_change_nothing(small):
    scenario = chappe.Scenario.read(small)
    trace = scenario.trace(1)
    assert trace.run.digest == scenario.run(1).digest
    sent = trace.run.counters["frames"]
    assert trace.frames.height == sent
    node = trace.of_node(3)
    assert node.height > 0 and node["node"].unique().to_list() == [3]
    outcomes = trace.receptions.group_by("outcome").agg(polars.len())
    assert "received" in outcomes["outcome"].to_list()
    assert trace.links.height > 0 and trace.readings.height > 0
