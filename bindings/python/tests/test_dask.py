"""Goal: a sweep over workers of Dask has the rows of a local one octet for octet, whatever happens to a worker."""

import os
import signal
import threading
import time

import chappe
import chappe.dask
import pytest
from chappe import Identity
from polars.testing import assert_frame_equal

distributed = pytest.importorskip("distributed")

GRID = {"protocol.variant": ["paper", "more", "improved"], "radio.tx_power": "11..20 dBm/3"}


@pytest.fixture
def client():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def test_rows_equal_those_of_a_local_sweep(small, client, tmp_path):
    scenario = chappe.Scenario.read(small)
    local = chappe.sweep(scenario, GRID)
    assert_frame_equal(chappe.sweep(scenario, GRID, client=client), local, check_exact=True)
    # What one made, the other goes on with.
    out = tmp_path / "runs"
    chappe.sweep(scenario, GRID, seeds=[2], out=out)
    assert_frame_equal(chappe.sweep(scenario, GRID, out=out, client=client), local, check_exact=True)


def test_a_killed_worker_loses_nothing(small, client, tmp_path):
    kept = tmp_path / "runs"
    scenario, seeds = chappe.Scenario.read(small), range(1, 21)
    local = chappe.sweep(scenario, GRID, seeds=seeds)
    workers = client.run(os.getpid)
    killed = []

    def kill():
        # In the middle: when some runs are made and many are not.
        while not any(file.stat().st_size for file in kept.glob("journal*")):
            time.sleep(0.01)
        killed.append(next(iter(workers.values())))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    swept = chappe.sweep(scenario, GRID, seeds=seeds, out=kept, client=client)
    thread.join()
    assert killed[0] not in client.run(os.getpid).values()
    assert_frame_equal(swept, local, check_exact=True)


def test_workers_refuse_another_build(small):
    scenario = chappe.Scenario.read(small)
    own = chappe.identity()
    assert chappe.dask.work(own, scenario, [], 1)
    for other in [own._replace(commit="another"), own._replace(build="0123"), own._replace(version="9")]:
        with pytest.raises(chappe.MachineError, match="install the same wheel"):
            chappe.dask.work(other, scenario, [], 1)


def test_a_sweep_with_workers_of_another_build_ends(small, client, monkeypatch):
    other = Identity("0.0.1", "feedbeef0000", "")
    monkeypatch.setattr(chappe.dask, "identity", lambda: other)
    with pytest.raises(chappe.MachineError, match="feedbeef0000"):
        chappe.sweep(chappe.Scenario.read(small), GRID, client=client)


def test_an_error_of_a_worker_is_raised_here(client, tmp_path):
    text = "[network]\nlinks = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]\n"
    text += "[[transfer]]\nsource = 0\nreceivers = [2]\nbytes = '1 kB'\n"
    with pytest.raises(chappe.InputError, match="no path leads") as caught:
        chappe.sweep(chappe.Scenario.parse(text), {"transfer.0.bytes": ["1 kB", "2 kB"]}, client=client)
    assert caught.value.line == 5
