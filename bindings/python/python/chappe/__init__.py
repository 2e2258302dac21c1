"""Chappe: bulk data, reliably, over lossy multi-hop radio.

>>> import chappe
>>> pair = chappe.Scenario.parse('''
... network.links = [[0, 0.8], [0.8, 0]]
... protocol.links = "true"
... [[transfer]]
... source = 0
... receivers = [1]
... bytes = "20 kB"
... ''')
>>> run = pair.run(seed=1)
>>> run.complete
True
>>> run.frame().select("flow", "delivered_bytes", "digest_ok").rows()
[('r1', 20000, True)]

A seed gives the same run here, in the command, and on any other machine: equal digests, equal runs.
"""

from __future__ import annotations

from . import errors, lab, protocol
from ._version import Identity, identity
from .errors import Defect, Error, InputError, MachineError
from .protocol import LinkNode
from .run import Run, Trace
from .scenario import Scenario
from .sweep import sweep

__all__ = [
    "Defect",
    "Error",
    "Identity",
    "InputError",
    "LinkNode",
    "MachineError",
    "Run",
    "Scenario",
    "Trace",
    "errors",
    "identity",
    "lab",
    "protocol",
    "sweep",
]

__version__ = identity().version
