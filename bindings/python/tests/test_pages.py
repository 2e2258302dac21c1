"""Goal: the Python on the pages works, and the command that the wheel carries does."""

import re

import chappe

from conftest import ROOT


def blocks(page):
    return re.findall(r"\n```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_protocol_on_the_page_delivers():
    (code,) = blocks("docs/write-a-protocol.md")
    exec(compile(code, "write-a-protocol.md", "exec"), {})
    scenario = chappe.Scenario.parse(
        "network.links = [[0, 0.7, 0.7], [0.7, 0, 0.7], [0.7, 0.7, 0]]\n"
        "[protocol]\nsystem = 'beacon'\n"
        "[[transfer]]\nsource = 0\nreceivers = [1, 2]\nbytes = '1 kB'\n"
    )
    assert scenario.run(1).complete


def test_the_readme_of_the_package_works(tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    small.rename("mesh.toml")
    (code,) = blocks("bindings/python/README.md")
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["table"].height == 2 * 3 * 8 * 3


def test_the_sweep_on_the_page_works(tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    small.rename("mesh.toml")
    code = next(block for block in blocks("docs/sweep.md") if "range(1, 21)" in block)
    names = {}
    exec(compile(code, "sweep.md", "exec"), names)
    assert names["table"].height == 2 * 3 * 20 * 3


def test_the_wheel_carries_the_command(command):
    done = command("--version")
    assert done.stdout.strip() == f"chappe {chappe.__version__}"
    assert "Pacifier" in command("systems").stdout
