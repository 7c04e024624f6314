"""A project that the program of Spec Kit has made, installed as people install it, goes from `analyze` to `execute`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scenarios.conftest import spec_story  # noqa: F401
from scenarios.spec_story import SpecStory, write
from scenarios.test_spec_waves import BASE, LINES, SPEC_KIT, TEST_LINES, TEST_WORDS, WORDS

pytestmark = [pytest.mark.npm, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def specify(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, which carries its templates; where it cannot be had there is nothing to test."""
    root = tmp_path_factory.mktemp("specify") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    line = [str(root / "bin/pip"), "install", "-q", "--retries", "0", "specify-cli==1.2.3"]
    got = subprocess.run(line, capture_output=True, text=True)
    if got.returncode:
        pytest.skip(f"specify-cli cannot be installed here: {got.stderr[-200:]}")
    return str(root / "bin/specify")


@pytest.mark.spec("E11")
def test_a_project_that_the_program_of_spec_kit_has_made_goes_from_analyze_to_execute(
    spec_story: SpecStory,  # noqa: F811
    specify: str,
):
    story = spec_story

    def called(*words: str) -> None:
        done = subprocess.run(words, cwd=story.pawl.workspace, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done

    story.lay({name: text for name, text in BASE.items() if not name.startswith("specs/")})
    how = ("--force", "--non-interactive", "--ignore-agent-tools", "--integration", "claude", "--script", "sh")
    called(specify, "init", "--here", *how)
    called("bash", ".specify/scripts/bash/create-new-feature.sh", "--json", "--short-name", "stats", "count words")
    called("bash", ".specify/scripts/bash/setup-plan.sh", "--json")
    (folder,) = (story.pawl.workspace / "specs").iterdir()
    (folder / "tasks.md").write_text((story.pawl.workspace / ".specify/templates/tasks-template.md").read_text())
    story.lay({}, "As the program made it")
    # Its own templates, before anybody has filled them in.
    bare = story.spec("analyze")
    assert bare.code == 1 and "[FEATURE NAME] of the template is not filled in" in bare.out, bare
    own = {name.replace("002-stats", folder.name): text for name, text in SPEC_KIT.items()}
    filled = {name: text for name, text in own.items() if name.endswith(("spec.md", "tasks.md", "constitution.md"))}
    story.lay({**filled, f"specs/{folder.name}/plan.md": "# Implementation Plan: Statistics\n"}, "Fill it in")
    story.model_says(
        *write(("tests/test_words.py", TEST_WORDS), user="T001: "),
        *write(("stats/words.py", WORDS), user="T002: "),
        *write(("tests/test_lines.py", TEST_LINES), user="T003: "),
        *write(("stats/lines.py", LINES), user="T004: "),
    )
    analyzed = story.spec("analyze")
    assert analyzed.code == 0, analyzed
    story.planned()
    said = story.spec("execute")
    assert said.code == 0, said
    assert story.commits()[-4:] == [f"[CHECKPOINT] Wave {number} Complete" for number in (1, 2, 3, 4)]
    assert {one["standing"] for one in story.pawl.json("spec", "status")["tasks"]} == {"proved"}
