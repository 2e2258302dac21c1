"""Goal: a mistake is told in the command's words. Method: the golden texts of the command's own tests."""

import chappe
import pytest

from conftest import ROOT

MISTAKES = ROOT / "crates/chappe/tests/mistakes"
CASES = sorted(file.stem for file in MISTAKES.glob("*.toml") if file.stem != "right")


def test_there_are_cases():
    assert len(CASES) >= 30


@pytest.mark.parametrize("case", CASES)
def test_mistakes_have_the_text_of_the_command(case, monkeypatch):
    monkeypatch.chdir(MISTAKES)
    with pytest.raises(chappe.InputError) as caught:
        chappe.Scenario.read(f"{case}.toml").run()
    assert str(caught.value).rstrip() == (MISTAKES / f"{case}.txt").read_text().rstrip()


def test_a_mistake_says_where_it_stands():
    with pytest.raises(ValueError, match="tx_pwoer") as caught:
        chappe.Scenario.parse("[network]\nlinks = [[0, 1], [1, 0]]\n[radio]\ntx_pwoer = '1 dBm'\n")
    error = caught.value
    assert isinstance(error, chappe.InputError)
    assert (error.file, error.line, error.column) == ("scenario", 4, 1)
    assert "tx_power" in (error.help or "")


def test_a_missing_file_is_an_input_error():
    with pytest.raises(chappe.InputError, match="there is no such file"):
        chappe.Scenario.read("nowhere.toml")
