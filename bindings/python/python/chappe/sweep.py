"""A scenario with several values of its keys, as one frame."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars

from . import _chappe, protocol
from ._version import library
from .scenario import Scenario, option

if TYPE_CHECKING:
    import distributed


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Any] | Iterable[str] | None = None,
    *,
    reference: Mapping[str, Any] | Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    copies: bool = False,
    shard: tuple[int, int] | None = None,
    client: distributed.Client | None = None,
) -> polars.DataFrame:
    """Runs every combination of values over the same seeds; what ``chappe sweep`` does, with a frame in place of the table.

    ``grid`` gives each key its values: a list, or a range as on the command line (``"10..20 dBm/5"``). Without it the table ``[sweep]``
    of the scenario counts. ``out`` is a folder that keeps the runs; the same call, or the command, later makes only what is missing
    there. ``shard=(3, 16)`` makes the third of sixteen parts. ``client`` is a client of Dask, whose workers make the runs
    (`chappe.dask`).

    The frame has a row for each receiver of each run, in the order of cells and seeds, and a column for each swept key. Ctrl-C ends it
    within a second and keeps what is finished.
    """
    if out is not None and scenario.system in protocol.registered():
        raise ValueError(
            "runs of a protocol written in Python are not kept in a folder: "
            "nothing tells two versions of it apart"
        )
    with _folder(out) as folder:
        ordered = _chappe.Sweep(
            scenario=scenario._made,
            grid=_grid(grid),
            reference=_grid(reference),
            seeds=None if seeds is None else list(seeds),
            out=folder,
            part=shard,
            command="chappe.sweep in " + (sys.argv[0] or "python"),
            library=library(),
        )
        try:
            if client is None:
                ordered.make(threads or os.cpu_count() or 1, copies)
            else:
                if copies:
                    raise ValueError("copies are kept by local sweeps only")
                from . import dask

                dask.make(ordered, scenario, client)
            files, asked = ordered.files()
        finally:
            ordered.close()
        return _read(files, asked)


def _grid(values: Mapping[str, Any] | Iterable[str] | None) -> list[str]:
    if values is None:
        return []
    if isinstance(values, Mapping):
        return [f"{key}={_values(value)}" for key, value in values.items()]
    return list(values)


def _values(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(option(each) for each in value)
    return option(value)


def _read(files: Sequence[Path], seeds: Sequence[int]) -> polars.DataFrame:
    """The rows of the ordered seeds: a folder may hold more."""
    cells = [polars.read_parquet(file) for file in files if file.exists()]
    if not cells:
        return polars.DataFrame()
    asked = polars.Series(seeds, dtype=polars.Int64)
    return polars.concat(cells, how="diagonal").filter(polars.col("seed").is_in(asked.implode()))


@contextlib.contextmanager
def _folder(out: str | os.PathLike[str] | None) -> Iterator[str]:
    if out is not None:
        yield os.fspath(out)
        return
    with tempfile.TemporaryDirectory(prefix="chappe-sweep-") as folder:
        yield folder
