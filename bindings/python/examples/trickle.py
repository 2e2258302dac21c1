"""Dissemination of one object by Trickle (RFC 6206): `examples/trickle` in Python, line by line.

From time to time each node broadcasts which packets it has, and its neighbours broadcast what it lacks. A node that overhears the same
summary or the same packet stays silent. A run of a seed equals the Rust one, digest and all.

    python trickle.py ../../../examples/trickle/mesh.toml
"""

from __future__ import annotations

import sys

import chappe
from chappe.protocol import Class, Frame, Received, Sent, Station

MILLISECOND = 1_000_000
#: Octets of the object in a packet.
PAYLOAD = 1024
#: The shortest interval (RFC 6206's Imin): some twenty packets at 2 Mbit/s.
INTERVAL_MIN = 100 * MILLISECOND
#: The longest interval (Imax): seven doublings.
INTERVAL_MAX = 12_800 * MILLISECOND
#: A node that hears this many equal summaries in an interval does not send its own (k).
REDUNDANCY = 2
#: First octet of a summary; one bit for each packet follows.
SUMMARY = 0
#: First octet of a packet; its number in two octets and its bytes follow.
PACKET = 1


class Trickle(chappe.LinkNode):
    """One node: it has an object, or expects one of known length."""

    name = "trickle-python"
    title = "Trickle"
    about = "a flood by Trickle timers (RFC 6206)"
    octets_max = PAYLOAD + 3

    def __init__(self, station: Station) -> None:
        packets = -(-station.octets // PAYLOAD)
        self.counters = {"summaries": 0, "data_transmissions": 0}
        self.random = station.random
        self.object = bytearray(station.object or bytes(station.octets))
        has_it = station.object is not None
        self.have = [has_it] * packets
        self.wanted = [False] * packets
        self.count(0 if has_it or station.octets == 0 else None)
        self.summary_due = False
        self.begin(0, INTERVAL_MIN)

    def count(self, completed: int | None) -> None:
        """Brings up to date what the lab reads: how much is there, since when all of it, and the copy."""
        self.delivered, self.completed = sum(self.have) * PAYLOAD, completed
        self.copy = None if completed is None else bytes(self.object)

    def begin(self, now: int, interval: int) -> None:
        """Begins an interval; the node decides at a random moment of its second half (RFC 6206, 4.2, step 2)."""
        half = interval // 2
        pause = half + self.random.below(half)
        self.interval, self.heard = interval, 0
        self.end = now + interval
        self.decide_at: int | None = now + pause

    def handle_link(self, now: int, event: Received | Sent) -> None:
        if not isinstance(event, Received):
            return
        equal = self.on_frame(now, event.sdu)
        if equal:
            self.heard += 1
        elif equal is False and self.interval > INTERVAL_MIN:
            # Neighbours differ: back to the shortest interval (RFC 6206, 4.2, step 6).
            self.begin(now, INTERVAL_MIN)

    def on_frame(self, now: int, sdu: bytes) -> bool | None:
        """Whether the frame shows that its sender has the same packets; `None` if it was not used."""
        if sdu[:1] == bytes([SUMMARY]):
            return self.on_summary(sdu[1:])
        if sdu[:1] == bytes([PACKET]) and len(sdu) >= 3:
            return self.on_packet(now, int.from_bytes(sdu[1:3], "big"), sdu[3:])
        return None

    def on_summary(self, bits: bytes) -> bool | None:
        if len(bits) != -(-len(self.have) // 8):
            return None
        equal = True
        for packet, have in enumerate(self.have):
            theirs = bool(bits[packet // 8] >> (packet % 8) & 1)
            equal &= theirs == have
            self.wanted[packet] = have and not theirs
        return equal

    def on_packet(self, now: int, packet: int, octets: bytes) -> bool | None:
        start = packet * PAYLOAD
        if packet >= len(self.have) or len(octets) != len(self.object[start : start + PAYLOAD]):
            return None
        # The neighbours have heard it too.
        self.wanted[packet] = False
        if self.have[packet]:
            return None
        self.object[start : start + PAYLOAD] = octets
        self.have[packet] = True
        self.count(now if all(self.have) else None)
        return False

    def pending(self) -> Class:
        control = Class.CONTROL if self.summary_due else Class.NONE
        return control | (Class.DATA if True in self.wanted else Class.NONE)

    def poll_link(self, now: int, allowed: Class) -> Frame | None:
        due = self.pending() & allowed
        if due & Class.CONTROL:
            self.counters["summaries"] += 1
            self.summary_due = False
            return Frame(self.summary(), Class.CONTROL)
        if due & Class.DATA:
            self.counters["data_transmissions"] += 1
            packet = self.wanted.index(True)
            self.wanted[packet] = False
            octets = self.object[packet * PAYLOAD : (packet + 1) * PAYLOAD]
            return Frame(bytes([PACKET]) + packet.to_bytes(2, "big") + octets, Class.DATA)
        return None

    def summary(self) -> bytes:
        bits = bytearray(-(-len(self.have) // 8))
        for packet, have in enumerate(self.have):
            bits[packet // 8] |= have << packet % 8
        return bytes([SUMMARY]) + bits

    def handle_timeout(self, now: int) -> None:
        if self.decide_at is not None and self.decide_at <= now:
            self.decide_at = None
            self.summary_due = self.heard < REDUNDANCY
        if self.end <= now:
            self.begin(now, min(2 * self.interval, INTERVAL_MAX))

    def poll_timeout(self) -> int | None:
        return self.end if self.decide_at is None else min(self.decide_at, self.end)


chappe.protocol.register(Trickle)


if __name__ == "__main__":
    scenario = chappe.Scenario.read(sys.argv[1], set={"protocol.system": Trickle.name})
    for seed in scenario.seeds:
        run = scenario.run(seed)
        print(f"seed {seed}: {run.counters['data_transmissions']} packets, digest {run.digest}")
