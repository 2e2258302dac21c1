"""Scenarios: read, checked, run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _chappe
from .run import Run, Trace

if TYPE_CHECKING:
    import networkx

#: Text that is no text in TOML: a truth value or a number.
_OTHER = re.compile(r"true|false|[+-]?(\d[\d_]*(\.\d[\d_]*)?([eE][+-]?\d+)?|inf|nan|0[xob][0-9a-fA-F_]+)")


def options(values: Mapping[str, Any] | Iterable[str] | None) -> list[str]:
    """Keys and values as the options ``key=value`` of ``--set``."""
    if values is None:
        return []
    if isinstance(values, Mapping):
        return [f"{key}={option(value)}" for key, value in values.items()]
    return list(values)


def option(value: Any) -> str:
    """A value as ``--set`` takes it. Text that the option would read as something else (``true``, ``802.11``) stands in quotes.

    >>> [option(value) for value in ("more", "15 dBm", "802.11", "true", True, 7, [1, 2])]
    ['more', '15 dBm', '"802.11"', '"true"', 'true', '7', '[1, 2]']
    """
    is_plain = isinstance(value, str) and not _OTHER.fullmatch(value)
    return value if is_plain else json.dumps(value)


class Scenario:
    """A network, its radios, a system, and what is to be carried."""

    def __init__(self, made: _chappe.Scenario) -> None:
        self._made = made

    @staticmethod
    def read(
        path: str | os.PathLike[str],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        object: str | os.PathLike[str] | None = None,
    ) -> Scenario:
        """Reads a scenario file. ``set`` changes keys, as ``--set`` does. ``object`` is a file to carry in the first transfer.

        Raises `InputError` if the scenario makes no sense.
        """
        return Scenario(_chappe.Scenario.read(path, options(set), object))

    @staticmethod
    def parse(
        text: str,
        *,
        name: str = "scenario",
        set: Mapping[str, Any] | Iterable[str] | None = None,
        object: str | os.PathLike[str] | None = None,
    ) -> Scenario:
        """The same for a text; ``name`` is what errors call it.

        >>> Scenario.parse("")
        Traceback (most recent call last):
        ...
        chappe.errors.InputError: error: missing field `network`
        ...
        """
        return Scenario(_chappe.Scenario.parse(name, text, options(set), object))

    @property
    def title(self) -> str:
        """The title, or what the scenario is called."""
        return self._made.title

    @property
    def system(self) -> str:
        """The system that carries the data."""
        return self._made.system

    @property
    def variant(self) -> str:
        """The variant of the system."""
        return self._made.variant

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self._made.nodes

    @property
    def seeds(self) -> list[int]:
        """The seeds that the scenario asks for."""
        return self._made.seeds

    @property
    def text(self) -> str:
        """The text of the scenario, without options."""
        return self._made.text

    def run(self, seed: int | None = None, *, copies: bool = False) -> Run:
        """Carries one seed to its end, the scenario's first one unless another is given.

        The interpreter is free for other threads meanwhile, and Ctrl-C ends the run within a second.
        """
        return Run(self._made.run(self._seed(seed), copies))

    def trace(self, seed: int | None = None, *, limit: int | None = None) -> Trace:
        """The same with its events. At least the last ``limit`` receptions are kept; without a limit, as many as ``chappe sim --record``
        keeps."""
        run, tables = self._made.trace(self._seed(seed), limit)
        return Trace(Run(run), tables)

    def graph(self, seed: int | None = None, *, at_least: float = 0.01) -> networkx.DiGraph:
        """The network of a seed as a graph of NetworkX: an edge for each link that delivers a share ``prr`` of at least ``at_least``.

        Nodes have ``pos`` where the network has places. See `chappe.graph.scenario` for the other direction.
        """
        from . import graph

        return graph.of(self._made.network(self._seed(seed)), self.nodes, at_least)

    def _seed(self, seed: int | None) -> int:
        return self.seeds[0] if seed is None else seed

    def __repr__(self) -> str:
        return f"<chappe.Scenario {self.title!r}: {self.system} {self.variant}, {self.nodes} nodes>"

    def __getstate__(self) -> dict[str, Any]:
        made = self._made
        return {"name": made.name, "text": made.text, "set": made.set, "object": made.object}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._made = _chappe.Scenario.parse(
            state["name"], state["text"], state["set"], state["object"]
        )
