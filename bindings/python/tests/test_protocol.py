"""Goal: a protocol in Python meets the same air as one in Rust, and its exceptions reach the caller."""

import importlib.util
import os
import re
import subprocess
import traceback
from pathlib import Path

import chappe
import pytest

from conftest import ROOT

SCENARIO = ROOT / "examples/trickle/mesh.toml"


def trickle():
    file = ROOT / "bindings/python/examples/trickle.py"
    spec = importlib.util.spec_from_file_location("trickle", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Trickle


def rust(scenario):
    """What `examples/trickle` prints for each seed: packets, summaries, digest."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release/trickle"
    if not program.exists():
        pytest.skip("`cargo build --release --package trickle` was not run")
    done = subprocess.run([program, scenario], capture_output=True, text=True, check=True)
    line = re.compile(r"seed (\d+): (\d+) packets and (\d+) summaries were broadcast, digest (\w+)")
    return {int(seed): (int(a), int(b), digest) for seed, a, b, digest in line.findall(done.stdout)}


def test_trickle_in_python_makes_the_runs_of_trickle_in_rust():
    theirs = rust(SCENARIO)
    assert sorted(theirs) == [1, 2, 3]
    name = trickle().name
    scenario = chappe.Scenario.read(SCENARIO, set={"protocol.system": name})
    for seed in scenario.seeds:
        run = scenario.run(seed)
        counters = run.counters
        ours = counters["data_transmissions"], counters["summaries"], run.digest
        assert ours == theirs[seed]
        assert run.complete


LINE = """
[network]
links = [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]
[[transfer]]
source = 0
receivers = [2]
bytes = "10 kB"
"""
RESTART = """
[[fault]]
at = "1 s"
kind = "crash"
node = 1
[[fault]]
at = "2 s"
kind = "restart"
node = 1
"""


def test_a_node_restarts():
    name = trickle().name
    scenario = chappe.Scenario.parse(LINE + RESTART, set={"protocol.system": name})
    run = scenario.run(1, copies=True)
    assert run.complete and len(run.copies[0]) == 10_000


@pytest.mark.parametrize("place", ["__init__", "handle_link", "poll_link", "handle_timeout", "pending"])
def test_an_exception_ends_the_run_with_its_traceback(place):
    base = trickle()

    def fails(self, *arguments):
        if place != "pending" or self.heard > 0:
            raise ZeroDivisionError(f"in {place}")
        return base.pending(self)

    chappe.protocol.register(type("Failing", (base,), {"name": "failing", place: fails}))
    scenario = chappe.Scenario.parse(LINE + RESTART, set={"protocol.system": "failing"})
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match=f"in {place}") as caught:
            scenario.run(1)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "fails"
    with pytest.raises(ZeroDivisionError):
        chappe.sweep(scenario, {"transfer.0.bytes": ["1 kB", "2 kB"]}, seeds=range(1, 5))
    # The name may be used again, and the older class is gone.
    chappe.protocol.register(type("Failing", (base,), {"name": "failing"}))
    again = chappe.Scenario.parse(LINE, set={"protocol.system": "failing"})
    assert again.run(1).complete


def test_an_exception_of_a_restarted_node_ends_the_run():
    base = trickle()

    def fails(self, station):
        if station.life > 0:
            raise ZeroDivisionError("in the second life")
        base.__init__(self, station)

    chappe.protocol.register(type("Reborn", (base,), {"name": "reborn", "__init__": fails}))
    scenario = chappe.Scenario.parse(
        LINE.replace("10 kB", "1 MB") + RESTART, set={"protocol.system": "reborn"}
    )
    with pytest.raises(ZeroDivisionError, match="second life"):
        scenario.run(1)


def test_nonsense_of_a_node_is_told():
    base = trickle()
    frame = chappe.protocol.Frame
    control = chappe.protocol.Class.CONTROL
    for answer, error, words in [
        (frame(bytes(5000), control), ValueError, "5000 octets"),
        (frame("text", control), TypeError, "bytes"),
        (frame(b"", chappe.protocol.Class.NONE), ValueError, "has a class"),
        (frame(b"", 77), ValueError, "77"),
        (7, AttributeError, "sdu"),
    ]:
        poll = {"name": "odd", "poll_link": lambda self, now, allowed, answer=answer: answer}
        chappe.protocol.register(type("Odd", (base,), poll))
        with pytest.raises(error, match=words):
            chappe.Scenario.parse(LINE, set={"protocol.system": "odd"}).run(1)


def test_a_protocol_runs_on_802_15_4():
    """Goal: the same class over the other radio: small frames, its rate, its profile; then over the first one again."""
    base = trickle()

    class Small(base):
        name = "small"
        radio = "802.15.4"
        octets_max = None

    # A packet of Trickle has 1027 octets and fits no such frame.
    chappe.protocol.register(Small)
    scenario = chappe.Scenario.parse(LINE, set={"protocol.system": "small"})
    with pytest.raises(ValueError, match="1027 octets, at most 116"):
        scenario.run(1)

    chappe.protocol.register(type("Small", (Flood,), {"name": "small", "radio": "802.15.4"}))
    scenario = chappe.Scenario.parse(LINE.replace("10 kB", "100 B"), set={"protocol.system": "small"})
    slow = scenario.run(1)
    assert slow.complete and slow.counters["floods"] >= 2
    with pytest.raises(chappe.InputError, match="cc2420"):
        chappe.Scenario.parse(LINE + '[radio]\nprofile = "ns2-threshold"\n', set={"protocol.system": "small"})

    chappe.protocol.register(type("Small", (Flood,), {"name": "small"}))
    fast = chappe.Scenario.parse(LINE.replace("10 kB", "100 B"), set={"protocol.system": "small"}).run(1)
    assert fast.complete and fast.digest != slow.digest


class Flood(chappe.LinkNode):
    """Whoever has the object broadcasts it each 50 ms."""

    def __init__(self, station):
        super().__init__(station)
        self.counters = {"floods": 0}
        self.object, self.at, self.due = station.object, None, False
        if self.object is not None:
            self.completed, self.at = 0, station.random.below(50_000_000)

    def handle_link(self, now, event):
        if isinstance(event, chappe.protocol.Received) and self.object is None:
            self.object = self.copy = event.sdu
            self.delivered, self.completed, self.at = len(event.sdu), now, now + 20_000_000

    def pending(self):
        return chappe.protocol.Class.DATA if self.due else chappe.protocol.Class.NONE

    def poll_link(self, now, allowed):
        self.due = False
        self.counters["floods"] += 1
        return chappe.protocol.Frame(self.object)

    def handle_timeout(self, now):
        self.due, self.at = True, now + 50_000_000

    def poll_timeout(self):
        return self.at


def test_what_cannot_be_registered_is_refused():
    with pytest.raises(TypeError, match="LinkNode"):
        chappe.protocol.register(int)
    with pytest.raises(ValueError, match="pacifier"):
        chappe.protocol.register(type("P", (chappe.LinkNode,), {"name": "pacifier"}))
    with pytest.raises(ValueError, match="rate_bps"):
        chappe.protocol.register(type("P", (chappe.LinkNode,), {"name": "p", "rate_bps": 3}))
    for odd, words in [
        ({"radio": "lora"}, "radio"),
        ({"radio": "802.15.4", "rate_bps": 1_000_000}, "250000"),
        ({"radio": "802.15.4", "octets_max": 117}, "at most 116"),
    ]:
        with pytest.raises(ValueError, match=words):
            chappe.protocol.register(type("P", (chappe.LinkNode,), {"name": "p", **odd}))
    with pytest.raises(chappe.InputError, match="trickle-pyhton"):
        chappe.Scenario.parse(LINE, set={"protocol.system": "trickle-pyhton"})


def test_a_sweep_of_a_protocol_keeps_no_folder(tmp_path):
    name = trickle().name
    scenario = chappe.Scenario.parse(LINE, set={"protocol.system": name})
    grid = {"transfer.0.bytes": ["2 kB", "4 kB"]}
    assert chappe.sweep(scenario, grid, seeds=[1, 2])["complete"].all()
    with pytest.raises(ValueError, match="not kept"):
        chappe.sweep(scenario, grid, out=tmp_path)
