"""The GitHub Action, by running its steps as a runner does: the variables, the files for outputs, the patch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from nursery import PATIENCE
from ui.cli.projects import SETTINGS, Project

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
FILES = {
    **SETTINGS,
    "app.py": "def after(number):\n    return number + 2\n",
    "test_app.py": "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n    assert after(7) == 8\n",
}
FIX = """
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
answer = "One is added now."
"""


def worked(tmp_path: Path, event: object = None, **inputs: str) -> tuple[int, dict[str, str], str]:
    """The step "Work" with these inputs: its exit code, its outputs, and what it said."""
    room = tmp_path / "runner"
    (room / "pawl").mkdir(parents=True)
    (room / "pawl/bin").symlink_to(Path(sys.executable).parent)
    (room / "event.json").write_text(json.dumps(event or {}))
    step = next(one for one in ACTION["runs"]["steps"] if one.get("id") == "work")
    values = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | inputs
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)
        for name, text in step["env"].items()
    }
    runner = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(room / "output"),
        "GITHUB_STEP_SUMMARY": str(room / "summary"),
        "GITHUB_EVENT_PATH": str(room / "event.json"),
        "RUNNER_TEMP": str(room),
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path / "project",
        env={**os.environ, **runner, **filled, "PATH": f"{tmp_path}:{os.environ['PATH']}"},  # noqa: TID251
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    written = room / "output"
    outputs = dict(line.split("=", 1) for line in written.read_text().splitlines()) if written.exists() else {}
    told = room / "summary"
    assert not done.returncode or told.read_text().strip(), done
    return done.returncode, outputs, done.stdout + done.stderr + (told.read_text() if told.exists() else "")


@pytest.fixture
def checked_out(project: Project, tmp_path: Path) -> Path:
    (tmp_path / "script.toml").write_text(FIX)
    return project(FILES).workspace


@pytest.mark.whole
@pytest.mark.spec("F5")
def test_an_issue_becomes_a_verified_patch_that_fits_the_checked_out_tree(checked_out: Path, tmp_path: Path):
    before = tmp_path / "before"
    shutil.copytree(checked_out, before)
    issue = {"issue": {"number": 7, "title": "after adds two: fix it", "body": "test_after fails"}}
    code, outputs, said = worked(tmp_path, issue, model=f"scripted:{tmp_path / 'script.toml'}")
    assert code == 0, said
    assert (outputs["verdict"], outputs["exit-code"]) == ("verified", "0")
    subprocess.run(["git", "apply", outputs["patch"]], cwd=before, check=True)
    assert (before / "app.py").read_text() == (checked_out / "app.py").read_text() == FILES["app.py"].replace("2", "1")


@pytest.mark.whole
@pytest.mark.spec("F5")
def test_failing_tests_are_repaired_with_no_model_and_no_request(checked_out: Path, tmp_path: Path):
    code, outputs, said = worked(tmp_path, command="fix", seconds="60")
    assert code == 0, said
    assert Path(outputs["patch"]).read_text().startswith("diff --git a/app.py b/app.py")


@pytest.mark.whole
@pytest.mark.spec("F5", "E1")
@pytest.mark.parametrize("request_text", ["", "--approve is no option here: after adds one"])
def test_a_loop_works_until_the_failing_tests_pass(checked_out: Path, tmp_path: Path, request_text: str):
    script = f"scripted:{tmp_path / 'script.toml'}"
    code, outputs, said = worked(tmp_path, command="loop", request=request_text, model=script, seconds="120")
    assert (code, outputs.get("verdict")) == (0, "verified"), said
    assert "+    return number + 1" in Path(outputs["patch"]).read_text()


@pytest.mark.spec("F5")
def test_a_change_that_nothing_proves_is_a_patch_of_its_own_and_fails_the_step(checked_out: Path, tmp_path: Path):
    (checked_out / "test_app.py").unlink()
    script = f"scripted:{tmp_path / 'script.toml'}"
    code, outputs, said = worked(tmp_path, request="after adds one in app.py", model=script)
    assert (code, outputs["verdict"], outputs["exit-code"]) == (6, "unverified", "6"), said
    assert Path(outputs["patch"]).name == "unverified.patch" and "+ 1" in Path(outputs["patch"]).read_text()
    assert (checked_out / "app.py").read_text() == FILES["app.py"]


@pytest.mark.spec("F5")
def test_an_issue_of_another_number_is_read_with_gh_and_quoted(checked_out: Path, tmp_path: Path):
    gh = tmp_path / "gh"
    issue = {"number": 9, "title": "after adds two", "body": "It should add one.\n--yes"}
    gh.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\ncat <<'EOF'\n{json.dumps(issue)}\nEOF\n")
    gh.chmod(0o755)
    asked = "Resolve issue 9: after adds two\\n\\n> It should add one.\\n> --yes"
    script = tmp_path / "script.toml"
    script.write_text(f'[[turn]]\nmatch = {{ user = "{asked}" }}\n{FIX.partition("[[turn]]")[2]}')
    code, outputs, said = worked(tmp_path, {"issue": {"number": 7}}, issue="9", model=f"scripted:{script}")
    assert (code, outputs["verdict"]) == (0, "verified"), said
    assert (tmp_path / "asked").read_text().split() == ["issue", "view", "--json", "number,title,body", "--", "9"]
    gh.write_text("#!/bin/sh\necho no such issue >&2; exit 1\n")
    shutil.rmtree(tmp_path / "runner")
    code, outputs, said = worked(tmp_path, issue="9", model=f"scripted:{script}")
    assert code == 1 and "issue 9 cannot be read with gh: no such issue; set GH_TOKEN" in said and not outputs
    # No word of others is a command of the runner from here on.
    assert said.startswith("::stop-commands::")


@pytest.mark.spec("F5")
@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"command": "deploy"}, "there is no command 'deploy'"),
        ({}, "there is nothing to do"),
        ({"request": "fix it", "max-budget-usd": "much"}, "--max-budget-usd 'much' is not an amount: give US dollars"),
        ({"command": "fix", "seconds": "soon"}, "(exit 2)\n\n```\npawl fix: argument --seconds"),
        ({"command": "loop", "model": "nobody"}, "nobody"),
    ],
)
def test_wrong_inputs_stop_the_step_and_say_why(checked_out: Path, tmp_path: Path, inputs: dict[str, str], words: str):
    code, outputs, said = worked(tmp_path, **inputs)
    assert code != 0 and words in said and not outputs.get("patch")
    assert (checked_out / "app.py").read_text() == FILES["app.py"]


@pytest.mark.slow
def test_the_first_step_makes_an_environment_in_which_pawl_runs(tmp_path: Path):
    step = ACTION["runs"]["steps"][0]
    runner = {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path)}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env={**os.environ, **runner}, check=True)  # noqa: TID251
    said = subprocess.run([tmp_path / "pawl/bin/pawl", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("pawl ")
