"""What ends a call early. The text is the one that the command prints."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Any failure of Chappe."""


class InputError(Error, ValueError):
    """A mistake in a scenario or in an option.

    ``message`` is the mistake in one sentence, ``file`` where the text comes from, ``line`` and ``column`` where it stands, from one on,
    and ``help`` what to do about it. The last three are ``None`` where there is no such thing.
    """

    def __init__(
        self,
        text: str,
        *,
        message: str = "",
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(text)
        self.message = message or text
        self.file = file
        self.line = line
        self.column = column
        self.help = help

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions go from a worker to its driver with all their parts.
        return type(self), self.args, self.__dict__


class MachineError(Error, OSError):
    """The machine lacks something, such as room on the disk."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Defect(Error, RuntimeError):
    """A defect of Chappe itself. Please report it."""
