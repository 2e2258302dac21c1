"""The papers' figures as data: our values, the papers', the bounds, and the claims that they support.

>>> from chappe import lab
>>> lab.papers()["p3"][:2]
['table1', 'table2']
>>> (table,) = lab.figures("p3", ["table2"], quick=True)
>>> table.frame().columns[:7]
['figure', 'panel', 'kind', 'series', 'axis', 'place', 'x']
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import polars

from . import _chappe
from .frames import frame


class Figure:
    """A figure or table of a paper, made again."""

    def __init__(self, text: str, columns: list[tuple[str, str, list[Any]]]) -> None:
        self._value: dict[str, Any] = json.loads(text)
        self._columns = columns

    @property
    def name(self) -> str:
        """Its name on the command line."""
        name: str = self._value["figure"]
        return name

    @property
    def title(self) -> str:
        """What it shows."""
        title: str = self._value["title"]
        return title

    @property
    def notes(self) -> list[str]:
        """What a reader must know to read it, in sentences."""
        notes: list[str] = self._value["notes"]
        return notes

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What the paper says about it, and goals of ours, checked: the fields of ``chappe lab --json``."""
        claims: list[dict[str, Any]] = self._value["claims"]
        return claims

    def frame(self) -> polars.DataFrame:
        """A row for each point, with the interval of our value, the paper's value and the bound: the columns of the files of
        ``chappe lab --out``."""
        return frame(self._columns)

    def __repr__(self) -> str:
        return f"<chappe.lab.Figure {self.name}: {self.title}>"


def papers() -> dict[str, list[str]]:
    """The papers, and the names of their figures."""
    return dict(_chappe.papers())


def figures(
    paper: str,
    names: Iterable[str] = (),
    *,
    quick: bool = False,
    seed: int = 1,
    threads: int | None = None,
) -> list[Figure]:
    """Makes figures of a paper, all if none is named. With ``quick`` each is smaller and takes seconds to a minute. Ctrl-C ends it."""
    made = _chappe.figures(paper, list(names), quick, seed, threads or os.cpu_count() or 1)
    return [Figure(text, columns) for text, columns in made]
