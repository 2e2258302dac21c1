"""A finished run, and its events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars

from . import _chappe
from .frames import frame


class Run:
    """One seed of a scenario, carried to its end."""

    def __init__(self, made: _chappe.Run) -> None:
        self._made = made

    @property
    def seed(self) -> int:
        """The seed that decided everything random."""
        return self._made.seed

    @property
    def digest(self) -> str:
        """A digest of every event in order, in hexadecimal: equal digests, equal runs."""
        return self._made.digest

    @property
    def complete(self) -> bool:
        """Whether every receiver has the whole object with the right digest."""
        return self._made.complete

    @property
    def notes(self) -> list[str]:
        """What the user should know about the run, in sentences."""
        return self._made.notes

    @property
    def copies(self) -> list[bytes | None]:
        """The receivers' copies in the order of the rows; ``None`` where one is not complete, or if they were not asked for."""
        return self._made.copies

    def frame(self) -> polars.DataFrame:
        """A row for each receiver of each transfer: the columns of the files that ``chappe sim --out`` writes."""
        return frame(self._made.columns())

    def to_json(self) -> str:
        """The run as JSON, as ``chappe sim --json`` has it under ``runs``."""
        return self._made.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary: counters, bounds and all."""
        value: dict[str, Any] = json.loads(self.to_json())
        return value

    @property
    def counters(self) -> dict[str, int]:
        """Frames and packets, by what became of them."""
        counters: dict[str, int] = self.to_dict()["counters"]
        return counters

    def __repr__(self) -> str:
        return f"<chappe.Run seed={self.seed} digest={self.digest} complete={self.complete}>"

    def __getstate__(self) -> str:
        return self.to_json()

    def __setstate__(self, state: str) -> None:
        self._made = _chappe.Run.from_json(state)


class Trace:
    """The events of a run as frames. `docs/view.md` describes the columns.

    ``frames``: what was sent. ``receptions``: what became of each frame at each receiver in reach. ``switches``: radios that were
    switched. ``readings``: what nodes held. ``links``: how well each link delivers.
    """

    frames: polars.DataFrame
    receptions: polars.DataFrame
    switches: polars.DataFrame
    readings: polars.DataFrame
    links: polars.DataFrame

    def __init__(
        self, run: Run, tables: Iterable[tuple[str, list[tuple[str, str, list[Any]]]]]
    ) -> None:
        self.run = run
        for name, columns in tables:
            setattr(self, name, frame(columns))

    def of_node(self, node: int) -> polars.DataFrame:
        """What node `node` received and lost, and from whom, in order of time."""
        return self.receptions.filter(polars.col("node") == node)
