"""Frames from the columns that the library returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars

_KINDS: dict[str, Any] = {
    "whole": polars.Int64,
    "real": polars.Float64,
    "yes": polars.Boolean,
    "text": polars.String,
}


def frame(columns: Iterable[tuple[str, str, list[Any]]]) -> polars.DataFrame:
    """A frame of columns, each with its name, the kind of its values, and its values."""
    return polars.DataFrame(
        [polars.Series(name, values, dtype=_KINDS[kind]) for name, kind, values in columns]
    )
