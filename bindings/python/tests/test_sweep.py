"""Goal: a sweep has the rows of the command's, goes on where it stopped, and is one with it."""

import os
import signal
import threading

import chappe
import polars
import pytest
from polars.testing import assert_frame_equal

GRID = {"protocol.variant": ["paper", "more"], "radio.tx_power": "12..16 dBm/4"}


def same(ours, theirs):
    order = ["protocol.variant", "radio.tx_power", "seed", "sink"]
    assert_frame_equal(
        ours.sort(order), theirs.sort(order), check_exact=True, check_column_order=False
    )


def test_rows_equal_the_commands(small, command, tmp_path):
    ours = chappe.sweep(chappe.Scenario.read(small), GRID)
    assert ours.height == 2 * 2 * 3 * 3
    options = ["--grid", "protocol.variant=paper,more", "--grid", "radio.tx_power=12..16 dBm/4"]
    done = command("sweep", small, *options, "--out", tmp_path / "theirs")
    assert done.returncode == 0, done.stderr
    theirs = polars.read_parquet(tmp_path / "theirs/cells/*.parquet")
    same(ours, theirs)
    assert set(ours["radio.tx_power_dbm"]) == {12.0, 16.0}
    # In the order of cells and seeds.
    assert ours["protocol.variant"].unique(maintain_order=True).to_list() == ["paper", "more"]
    assert ours["seed"].to_list()[:9] == [1] * 3 + [2] * 3 + [3] * 3


def test_a_folder_keeps_what_is_there(small, tmp_path):
    scenario, out = chappe.Scenario.read(small), tmp_path / "runs"
    one = chappe.sweep(scenario, GRID, seeds=[1], out=out)
    files = {file: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    assert_frame_equal(chappe.sweep(scenario, GRID, seeds=[1], out=out), one)
    assert files == {file: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    parts = [chappe.sweep(scenario, GRID, out=out, shard=(part, 2)) for part in (1, 2)]
    whole = chappe.sweep(scenario, GRID, out=out)
    same(whole, chappe.sweep(scenario, GRID))
    assert sum(part.height for part in parts) == whole.height - one.height
    # Only what was asked for.
    assert_frame_equal(chappe.sweep(scenario, GRID, seeds=[1], out=out), one)


def test_ctrl_c_keeps_what_is_finished(small, tmp_path):
    scenario, out = chappe.Scenario.read(small), tmp_path / "runs"
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        chappe.sweep(scenario, GRID, seeds=range(1, 100_000), out=out)
    kept = polars.read_parquet(out / "cells/*.parquet")
    assert kept.height > 0
    seeds = kept["seed"].unique().to_list()[:2]
    same(
        chappe.sweep(scenario, GRID, seeds=seeds, out=out),
        chappe.sweep(scenario, GRID, seeds=seeds),
    )


def test_mistakes_are_input_errors(small):
    scenario = chappe.Scenario.read(small)
    with pytest.raises(chappe.InputError, match="nothing is swept"):
        chappe.sweep(scenario, {"protocol.variant": ["paper"]})
    with pytest.raises(chappe.InputError, match="varian"):
        chappe.sweep(scenario, {"protocol.varian": ["paper", "more"]})
    with pytest.raises(chappe.MachineError, match="cannot write"):
        chappe.sweep(scenario, GRID, out="/proc/nowhere")
