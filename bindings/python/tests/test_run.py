"""Goal: a seed gives the same run here and in the command, and a run can be stopped."""

import json
import os
import pickle
import signal
import threading
import time

import chappe
import polars
import pytest
from polars.testing import assert_frame_equal

from conftest import ROOT

#: One scenario of each system, made short.
SCENARIOS = [
    ("mesh-multicast.toml", {"transfer.0.bytes": "50 kB"}),
    ("p3-line.toml", {"transfer.0.bytes": "20 kB"}),
    ("wildnet-60km.toml", {"transfer.0.bytes": "300 kB"}),
    ("lln-3-hops.toml", {"transfer.0.bytes": "10 kB"}),
    ("mesh-flows.toml", {"protocol.probing": "10 s", "run.limit": "15 s"}),
]


@pytest.mark.parametrize(("file", "changes"), SCENARIOS)
def test_a_seed_gives_the_run_of_the_command(file, changes, command, tmp_path):
    path = ROOT / "examples" / file
    options = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    done = command("sim", path, "--seed", 7, "--json", "--out", tmp_path, *options)
    assert done.returncode in (0, 1), done.stderr
    theirs = json.loads(done.stdout)["runs"][0]
    run = chappe.Scenario.read(path, set=changes).run(7)
    ours = run.to_dict()
    # The only value that may differ: how long it took.
    del theirs["wall_s"], ours["wall_s"]
    assert ours == theirs
    assert run.digest == theirs["digest"]
    (written,) = tmp_path.glob("*.parquet")
    assert_frame_equal(run.frame(), polars.read_parquet(written), check_exact=True)


def test_a_run_has_copies_counters_and_a_pandas_frame(small):
    scenario = chappe.Scenario.read(small)
    run = scenario.run(copies=True)
    assert run.seed == scenario.seeds[0] == 3
    assert run.complete and [len(copy) for copy in run.copies] == [40_000] * 3
    assert run.counters["data_transmissions"] > 0
    table = run.frame().to_pandas()
    assert list(table["delivered_bytes"]) == [40_000] * 3
    assert scenario.run(3).copies == [None] * 3


def test_scenarios_and_runs_can_be_sent(small):
    scenario = pickle.loads(pickle.dumps(chappe.Scenario.read(small, set={"transfer.0.receivers": 2})))
    run = scenario.run(1)
    assert run.frame().height == 2
    again = pickle.loads(pickle.dumps(run))
    assert again.to_dict() == run.to_dict()


#: The bound of this network alone takes minutes.
LONG = """
network.links = [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]
protocol.links = "true"
[[transfer]]
source = 0
receivers = [2]
bytes = "400 MB"
"""


def test_ctrl_c_ends_a_run(small):
    scenario = chappe.Scenario.parse(LONG)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        scenario.run(1)
    assert time.monotonic() - begun < 0.5 + 2


def test_other_threads_go_on_while_a_run_goes():
    scenario = chappe.Scenario.parse(LONG)
    turns = 0

    def stop():
        nonlocal turns
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            turns += 1
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        scenario.run(1)
    thread.join()
    assert turns > 20
