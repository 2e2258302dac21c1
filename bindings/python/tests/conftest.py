"""What the tests share: the repository's files, and the command that the wheel carries."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Tests interrupt themselves and what they start. A shell has its background jobs ignore that, and they would go on for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[3]

#: A network that takes some hundredths of a second.
SMALL = """
[network]
generator = "random"
nodes = 8
area = ["300 m", "300 m"]
[[transfer]]
source = 0
receivers = 3
bytes = "40 kB"
[run]
seeds = [3, 1, 2]
"""


@pytest.fixture(autouse=True)
def handlers():
    """Gives Ctrl-C back: importing `dask_jobqueue` makes it end the program, for all tests that follow."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def command():
    """Calls the command `chappe` of this environment, as a terminal of 100 columns without colour would show it."""
    program = Path(sys.executable).parent / "chappe"

    def call(*arguments, folder=None):
        environment = {
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
        }
        return subprocess.run(
            [program, *map(str, arguments)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def small(tmp_path):
    """The file of a small scenario."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file
