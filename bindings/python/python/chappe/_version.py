"""Which build this is."""

from __future__ import annotations

from typing import NamedTuple

from . import _chappe


class Identity(NamedTuple):
    """What tells a build apart. Two builds with equal identities make equal runs of a seed."""

    version: str
    #: The commit it was built from, with ``+`` if the source was changed since.
    commit: str
    #: A digest of the library's file if the commit does not tell it apart, otherwise empty.
    build: str


def library() -> str:
    """The file of the compiled library."""
    return str(_chappe.__file__)


def identity() -> Identity:
    """The identity of this build."""
    return Identity(*_chappe.identity(library()))
