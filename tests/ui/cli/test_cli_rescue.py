"""What takes work back, looks at it and cleans up works when other commands cannot: settings, folders, logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.house import House

LOOKING = (["history"], ["diff", "1"], ["requests"], ["scores"], ["history", "--runs"], ["gc"])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text("")
    return tmp_path / "config.toml"


@pytest.mark.parametrize("text", ["[permissions", "run_seconds = 'x'\n[permissions]\ndeny = ['Bsh(x)']\n", None])
def test_rescue_commands_warn_of_wrong_settings_and_go_on_with_the_defaults(pawl: Pawl, settings: Path, text: str):
    entry = pawl.applied("echo changed > README.md")
    settings.unlink() if text is None else settings.write_text(text)
    assert pawl("run", "--", "true").code == 52
    *looked, undone, redone, doctor = pawl.many([*LOOKING, ["undo"], ["redo"], ["doctor"]])
    for said in (*looked, undone, redone):
        assert said.code == 0 and "the defaults are used instead" in said.err, said
    assert "nothing old is dropped" in looked[-1].err
    assert f"undo with: pawl undo {entry + 2}" in redone.out
    assert doctor.code == 1 and doctor.out.count(f"  ! {str(settings)!r}") <= 1
    if text and "Bsh" in text:
        assert "run_seconds must be a number" in doctor.out and "no tool 'Bsh'" in doctor.out


def test_rescue_commands_work_in_the_home_folder_and_below_the_workspace(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl.applied("echo changed > README.md")
    monkeypatch.setenv("HOME", str(tmp_path))
    for words in (["history"], ["doctor"], ["gc"], ["requests"]):
        assert pawl(*words, cwd=tmp_path).code == 0, words
    assert pawl("run", "--", "true", cwd=tmp_path).code == 42
    assert pawl("undo", cwd=pawl.workspace / "src").code == 0
    assert (pawl.workspace / "README.md").read_text().startswith("# Greeter")


@pytest.mark.whole
@pytest.mark.parametrize("house", ["ordinary"], indirect=True)
def test_a_folder_that_cannot_be_written_can_be_looked_at_and_verified(house: House):
    house.applied("echo b > a.txt")
    house.workspace.chmod(0o555)
    try:
        for words in (*LOOKING, ["doctor"], ["verify"], ["permissions"], ["undo", "--dry-run"]):
            code, _, err = house(*words)
            assert "is not writable" not in err and code in (0, 3, 6), (words, err)
        assert "is not writable" in house("undo")[2]
    finally:
        house.workspace.chmod(0o755)


SCRIPT = '[[turn]]\nanswer = "See README.md:1."\n'


@pytest.mark.spec("C15", "B11")
def test_the_logs_of_requests_and_scores_are_shown_and_the_runs_they_are_about(pawl: Pawl):
    assert [said.out.splitlines()[0] for said in pawl.many([["requests"], ["scores"], ["history", "--runs"]])] == [
        "no model was asked in this workspace yet",
        "no run was scored in this workspace yet",
        "no run was started in this workspace yet",
    ]
    (pawl.workspace / "s.toml").write_text(SCRIPT)
    first = pawl.json("do", "--model", "scripted:s.toml", "what is it?")["run"]
    second = pawl.json("do", "--model", "scripted:s.toml", "what else is it?")["run"]
    logged = pawl.json("requests")
    assert [one["run"] for one in logged["requests"]] == [first, second]
    (one,) = pawl.json("requests", second)["requests"]
    assert (one["mode"], one["stage"], one["model"], one["ended"]) == ("chat", "act", "scripted:s.toml", "end")
    assert one["input_tokens"] > 0 and one["conversation"] and "file_read" in one["tools"] and one["time"]
    assert logged["total"]["requests"] == 2 and logged["total"]["cost_usd"] == 0
    (score,) = pawl.json("scores", first)["scores"]
    assert score["run"] == first and score["score"] == 5 and score["judge"] == "rules" and score["reason"]
    shown, scored, runs, unknown = pawl.many(
        [["requests", "--limit", "1"], ["scores"], ["history", "--runs"], ["requests", "r0"]]
    )
    assert second in shown.out and first not in shown.out and "1 older: --limit 2" in shown.out
    assert first in scored.out and second in scored.out
    assert runs.lines[1].split()[0] == second and runs.lines[1].endswith("what else is it?")
    assert unknown.code == 42 and "no run 'r0'" in unknown.err


def test_a_folder_whose_settings_cannot_be_used_is_not_trusted_and_lapsed_trust_is_told(pawl: Pawl):
    own = pawl.workspace / ".pawl"
    own.mkdir()
    for text in ("[permissions", "[permissions]\ndeny = ['Bsh(x)']\n", "[[hooks.Stopp]]\n"):
        (own / "settings.toml").write_text(text)
        assert pawl("trust").code == 52
    assert pawl.json("doctor")["trust"] == "not trusted"
    (own / "settings.toml").write_text("[permissions]\ndeny = ['Bash(rm *)']\n")
    assert pawl("trust").code == 0
    assert pawl.json("doctor")["trust"] == "trusted"
    (own / "settings.toml").write_text("[permissions]\n")
    assert "the trust in this folder lapsed: .pawl/settings.toml changed since" in pawl("doctor").out
