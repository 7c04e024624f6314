"""`pawl permissions` and `pawl trust`: what an agent may do here, and whose word counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui.cli.console import Pawl
from world import lay


def settings(pawl: Pawl, text: str) -> None:
    file = Path(pawl.json("doctor")["settings"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.spec("F8")
def test_rules_are_listed_with_where_they_stand(pawl: Pawl):
    settings(pawl, '[permissions]\npreset = "strict"\ndeny = ["Bash(git push *)"]\n')
    found = pawl.json("permissions")
    assert found["preset"] == "strict" and found["defaults"]["writes"] == "ask"
    assert found["rules"][0]["rule"] == "Bash(git push *)" and found["rules"][0]["source"].endswith("config.toml")
    shown = pawl("permissions")
    assert "Bash(git push *)" in shown.out and "otherwise: reading allow, edits ask" in shown.out


def test_a_call_is_checked_and_the_rule_that_works_is_offered(pawl: Pawl):
    said = pawl.json("permissions", "check", "--net", "Bash(cd x && npm run build -- --fast)")
    assert said == {
        "ruling": "ask",
        "reason": "no rule allows 'npm run build -- --fast'",
        "rule": "",
        "source": "",
        "suggestions": ["Bash(npm run build *)"],
    }
    # As it is typed in a session, without quotes.
    assert pawl.json("permissions", "check", "Bash(git", "push)", "--net") == pawl.json(
        "permissions", "check", "--net", "Bash(git push)"
    )
    assert pawl.json("permissions", "check", "Bash(make)")["ruling"] == "allow"
    assert pawl.json("permissions", "check", "Bash(make)", "--net")["ruling"] == "ask"
    assert pawl.json("permissions", "check", "Edit(.git/config)")["ruling"] == "deny"
    assert pawl.json("permissions", "check", "mcp__docs__search")["ruling"] == "ask"


@pytest.mark.parametrize(
    ("words", "code"), [(["check"], 42), (["list", "Bash"], 42), (["check", "(("], 42), (["chek"], 2)]
)
def test_what_is_no_call_is_refused(pawl: Pawl, words: list[str], code: int):
    assert pawl("permissions", *words).code == code


def test_rules_that_cannot_be_meant_are_a_mistake_of_the_settings(pawl: Pawl):
    settings(pawl, '[permissions]\ndeny = ["Bsh(x)"]\n')
    said = pawl("permissions")
    assert said.code == 52 and "did you mean 'Bash'?" in said.err


@pytest.mark.attack("A46", "A48")
def test_a_folder_is_trusted_until_its_files_change(pawl: Pawl):
    lay(pawl.workspace, {".pawl/settings.toml": b'[permissions]\nallow = ["Bash(make *)"]\n'})
    said = pawl("permissions", "check", "Bash(make)", "--net")
    assert said.out.startswith("ask: ") and "not trusted" in said.err
    assert ".pawl/settings.toml" in pawl("trust").out
    assert pawl("permissions", "check", "Bash(make)", "--net").out.startswith("allow: ")
    lay(pawl.workspace, {".pawl/settings.toml": b'[permissions]\nallow = ["Bash"]\n'})
    assert pawl("permissions", "check", "Bash(make)", "--net").out.startswith("ask: ")
    (stands,) = pawl.json("trust", "--list")["folders"]
    assert (stands["standing"], stands["changed"]) == ("lapsed", [".pawl/settings.toml"])
    assert "~ .pawl/settings.toml" in pawl("trust").out
    assert pawl.json("trust", "--revoke")["revoked"]
    assert pawl("trust", "--list").out == "no folder is trusted\n"
