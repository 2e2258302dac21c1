"""Runs the notebooks of this folder: `python run.py` compares what their cells print with what they hold, `--write` replaces it.

A cell's last line may be an expression, whose text is shown, as in Jupyter. The outputs are text, so that they can be compared: every run
of a seed is the same.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars

HERE = Path(__file__).resolve().parent


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each cell of code with the text that it gives now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, executed("".join(cell["source"]), names)


def executed(source: str, names: dict[str, Any]) -> str:
    """What the source prints, then the text of the expression on its last line."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), polars.Config(
        tbl_rows=40, tbl_cols=12, tbl_width_chars=110, fmt_str_lengths=40, float_precision=2
    ):
        exec(compile(tree, "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
            if value is not None:
                print(value)
    return said.getvalue()


def held(cell: dict[str, Any]) -> str:
    """The text that a cell of a notebook holds as its output."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def run(file: Path, write: bool) -> list[str]:
    """What differs, a line for each cell that does; nothing after writing."""
    notebook = json.loads(file.read_text())
    differ = []
    for number, (cell, text) in enumerate(outputs(notebook), 1):
        if write:
            lines = text.splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [stream] if lines else []
            cell["execution_count"] = number
        elif text != held(cell):
            differ.append(f"{file.name}, cell {number}: it holds\n{held(cell)}\nand gives\n{text}")
    if write:
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return differ


if __name__ == "__main__":
    write = "--write" in sys.argv[1:]
    found = [line for file in sorted(HERE.glob("*.ipynb")) for line in run(file, write)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
