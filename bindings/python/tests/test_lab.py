"""Goal: figures are the command's, point by point, and their claims come along."""

import json

import chappe
import polars
import pytest
from polars.testing import assert_frame_equal


def test_points_equal_the_commands(command, tmp_path):
    done = command("lab", "p3", "table2", "--quick", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (figure,) = chappe.lab.figures("p3", ["table2"], quick=True)
    (file,) = tmp_path.rglob("*table2.parquet")
    assert_frame_equal(figure.frame(), polars.read_parquet(file), check_exact=True)
    theirs = [claim for claim in find(json.loads(done.stdout), "claims")]
    assert figure.claims and figure.claims in theirs
    assert figure.name == "table2" and figure.title


def find(value, name):
    """Everything under this name in a document."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for below in value.values():
            yield from find(below, name)
    elif isinstance(value, list):
        for below in value:
            yield from find(below, name)


def test_unknown_names_are_told():
    assert {"pacifier", "p3", "wildnet", "tcplp", "dpclo"} == set(chappe.lab.papers())
    with pytest.raises(chappe.InputError, match="pacifier"):
        chappe.lab.figures("pacifer")
    with pytest.raises(chappe.InputError, match="figure5"):
        chappe.lab.figures("p3", ["figur5"])
