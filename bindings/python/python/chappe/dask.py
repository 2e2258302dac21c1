"""Sweeps on many machines: the workers of Dask make the runs, this process keeps them.

A worker makes one run at a time from the text of the scenario, the values of its cell and a seed, and returns the run as JSON. So the rows
equal those of a sweep on one machine, octet for octet. A worker that dies in the middle loses nothing but its own run, which Dask gives to
another. Workers must have the build that this process has: runs of two programs do not belong into one table.

>>> import chappe, distributed                                # doctest: +SKIP
>>> client = distributed.Client("tcp://scheduler:8786")       # doctest: +SKIP
>>> table = chappe.sweep(scenario, grid, out="runs", client=client)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _chappe
from ._version import Identity, identity
from .errors import MachineError
from .scenario import Scenario

if TYPE_CHECKING:
    import distributed

#: Runs that wait at the scheduler for each thread of the workers: enough to keep it busy, few enough to stop soon.
WAITING = 4


def work(driver: Identity, scenario: Scenario, settings: list[str], seed: int) -> str:
    """One run, on a worker. Refuses another build than the driver's."""
    own = identity()
    if own != tuple(driver):
        raise MachineError(
            f"this worker has chappe {_named(own)}, the driver {_named(Identity(*driver))}: "
            "install the same wheel on both"
        )
    made = scenario.__getstate__()
    cell = Scenario(
        _chappe.Scenario.parse(made["name"], made["text"], made["set"] + settings, made["object"])
    )
    return cell.run(seed).to_json()


def _named(build: Identity) -> str:
    return " ".join(part for part in build if part)


def make(ordered: _chappe.Sweep, scenario: Scenario, client: distributed.Client) -> None:
    """Makes the missing runs on the workers of a client, and keeps each as it ends. An exception of a run ends the whole after what is
    finished is kept; so does Ctrl-C."""
    import distributed

    tasks, _, _ = ordered.missing()
    settings = ordered.settings()
    driver = identity()
    rest = iter(tasks)
    cells: dict[Any, int] = {}

    def submit() -> distributed.Future[str] | None:
        task = next(rest, None)
        if task is None:
            return None
        cell, seed = task
        future = client.submit(work, driver, scenario, settings[cell], seed, pure=False)
        cells[future.key] = cell
        return future

    threads = max(1, sum(client.nthreads().values()))
    begun = [future for _ in range(WAITING * threads) if (future := submit()) is not None]
    finished = distributed.as_completed(begun)
    try:
        for future in finished:
            ordered.keep(cells.pop(future.key), future.result())
            future.release()
            following = submit()
            if following is not None:
                finished.add(following)
    finally:
        client.cancel([distributed.Future(key, client) for key in cells])
        ordered.pack()
