"""Goal: the notebooks run, and hold what their cells give."""

import importlib.util

import pytest

from conftest import ROOT

FOLDER = ROOT / "bindings/python/notebooks"


def runner():
    spec = importlib.util.spec_from_file_location("notebooks_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_paper_has_a_notebook():
    papers = {"pacifier", "p3", "wildnet", "tcplp", "dpclo"}
    assert {file.stem for file in FOLDER.glob("*.ipynb")} == papers


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_notebooks_hold_what_they_give(file, monkeypatch):
    # Paths in a notebook count from its folder, as in Jupyter.
    monkeypatch.chdir(FOLDER)
    differ = runner().run(file, write=False)
    assert not differ, "\n".join(differ)
