"""Builds the wheel: first the program `chappe`, which the wheel carries as a file, then everything else by maturin.

The program is a file because some commands (`chappe emu cast`, `chappe link unit`) start their own file again.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (the hooks of a build backend)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
SCRIPTS = HERE / "chappe.data" / "scripts"

# maturin wants it before it writes metadata.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def program():
    """The program under `chappe.data/scripts`, which maturin puts into the wheel: a given one, or one that is built."""
    name = "chappe.exe" if os.name == "nt" else "chappe"
    given = os.environ.get("CHAPPE_PROGRAM")
    if given:
        shutil.copy2(given, SCRIPTS / name)
        return
    # Without the module, which maturin builds in an environment of its own and would build again.
    subprocess.run(["cargo", "build", "--release", "--package", "chappe"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy2(target / "release" / name, SCRIPTS / name)
