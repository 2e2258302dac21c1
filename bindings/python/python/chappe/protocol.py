"""Protocols written in Python: slow, but on the same radios as all others.

Write a class on top of `LinkNode`, give it the methods of the contract, and `register` it. Scenarios then name it:
``protocol.system = "NAME"``. `docs/write-a-protocol.md` explains the contract, and ``bindings/python/examples/trickle.py`` is a whole
protocol. Times are whole nanoseconds from the start of the transfer.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from . import _chappe
from ._chappe import Stream

__all__ = ["Class", "Frame", "LinkNode", "Received", "Sent", "Station", "Stream", "register", "registered"]


class Class(enum.IntFlag):
    """The urgency of a frame, least first: the access categories of 802.11e. Several together are a set of classes."""

    NONE = 0
    BACKGROUND = 1
    DATA = 2
    URGENT = 4
    CONTROL = 8
    ALL = 15


@dataclass(frozen=True)
class Frame:
    """A frame that a node hands to its link."""

    sdu: bytes
    cls: Class = Class.DATA
    #: The number of a neighbour, or ``None`` for all in range.
    to: int | None = None
    #: Comes back in `Sent`.
    token: int = 0


@dataclass(frozen=True)
class Received:
    """A frame that was received. Its octets come from outside: check them, never trust them."""

    #: The neighbour that transmitted it.
    source: int | None
    #: The node that it was for, ``None`` for all in range.
    to: int | None
    sdu: bytes
    #: Received power, where the radio reports it.
    power_dbm: float | None


@dataclass(frozen=True)
class Sent:
    """How the transmission of a frame ended."""

    token: int
    #: Whether the neighbour acknowledged it; ``None`` for a broadcast, which nobody acknowledges.
    acknowledged: bool | None
    attempts: int


@dataclass(frozen=True)
class Station:
    """What a node is told when it is made."""

    node: int
    #: 0 at the start; a node that restarts after a crash has another.
    life: int
    #: The length of the object.
    octets: int
    #: The object, at its source only.
    object: bytes | None
    is_receiver: bool
    #: The node's own random numbers. Others, such as those of `random`, would make a run that cannot be repeated.
    random: Stream


class LinkNode:
    """A node that sits on a MAC which asks it for a frame at the moment the frame can leave (broadcast and unicast).

    After every call of `handle_link`, `poll_link` and `handle_timeout` the driver reads `pending`, `poll_timeout` and `completed`.
    """

    #: The name in scenarios; that of the class in lower case if it is empty.
    name: ClassVar[str] = ""
    #: The name in sentences.
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    #: The radios below: ``"802.11"`` or ``"802.15.4"``.
    radio: ClassVar[str] = "802.11"
    #: The rate of all frames: 1, 2 (the default), 5.5 or 11 Mbit/s, and 250 kbit/s with 802.15.4.
    rate_bps: ClassVar[int | None] = None
    #: The largest frame that a node sends, in octets without the headers below: 1500 by default, and 116 at most with 802.15.4.
    octets_max: ClassVar[int | None] = None

    #: When the node had the whole object; ``None`` before.
    completed: int | None = None
    #: Octets of the object that the node has.
    delivered: int = 0
    #: The object, once it is complete.
    copy: bytes | None = None
    #: What the node counted; the sums over all nodes are the run's counters.
    counters: dict[str, int]

    def __init__(self, station: Station) -> None:
        self.counters = {}

    def handle_link(self, now: int, event: Received | Sent) -> None:
        """Handles a received frame, or the outcome of one of the node's own."""

    def pending(self) -> Class:
        """The classes in which a frame is waiting now."""
        return Class.NONE

    def poll_link(self, now: int, allowed: Class) -> Frame | None:
        """The frame to send now, the most urgent of the ``allowed`` classes; ``None`` if there is nothing to send after all."""
        return None

    def handle_timeout(self, now: int) -> None:
        """Handles the deadline of `poll_timeout`, which has come. No deadline may be left that lies in the past."""

    def poll_timeout(self) -> int | None:
        """The next deadline, if there is one."""
        return None


_registered: dict[str, type[LinkNode]] = {}
#: Rate and largest frame of a class that names none, by its radio.
_USUAL = {"802.11": (2_000_000, 1500), "802.15.4": (250_000, 116)}


def register(node: type[LinkNode]) -> type[LinkNode]:
    """Makes a class of nodes known to scenarios under its name, in place of an older one of that name. May be a decorator.

    An exception that a node raises ends the run, and the call that made the run raises it.
    """
    if not (isinstance(node, type) and issubclass(node, LinkNode)):
        raise TypeError(f"{node!r} is no class on top of chappe.LinkNode")
    name = node.name or node.__name__.lower()
    rate_bps, octets_max = _USUAL.get(node.radio, (0, 0))
    rate_bps = rate_bps if node.rate_bps is None else node.rate_bps
    octets_max = octets_max if node.octets_max is None else node.octets_max
    words = (node.title or node.__name__, node.about)
    _chappe.register(name, words, node.radio, rate_bps, octets_max, node)
    _registered[name] = node
    return node


def registered() -> dict[str, type[LinkNode]]:
    """The registered classes by name."""
    return dict(_registered)
