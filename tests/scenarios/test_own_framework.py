"""A test framework of the user's own, from the page: found, run, counted, and part of what decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scenarios.story import Story, patch, say

from pawl.core.diagnostic import TestCounts as Counts
from pawl.core.errors import ConfigError
from pawl.core.run import DeliveryState
from pawl.settings.config import framework_folders

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "settings.md").read_text()
CHECKS = """\
n=0; case "$(cat value)" in good) ;; *) n=1; bad='<failure message="bad">bad</failure>' ;; esac
echo "<testsuites><testsuite name='s' tests='2' failures='$n'><testcase classname='c' name='one'/>"
echo "<testcase classname='c' name='two'>$bad</testcase></testsuite></testsuites>"
exit $n
"""


@pytest.fixture
def checks(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Story:
    request.addfinalizer(lambda known=tuple(framework_folders): framework_folders.__setitem__(slice(None), known))
    (tmp_path / "frameworks").mkdir()
    example = re.search(r"# frameworks/checks.toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "frameworks" / "checks.toml").write_text(example[1])
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"checks.conf": "", "run_checks.sh": CHECKS, "value": "bad\n", "a.check": ""})
    return story


@pytest.mark.spec("B10", "B14")
def test_tests_of_a_framework_of_the_users_are_run_counted_and_decide(checks: Story):
    ran = checks.do("run the tests", model="")
    assert (ran.after, ran.exit_code) == (Counts(passed=1, failed=1), 1)
    checks.model_says(
        {"answer": {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "value"}}]}},
        patch("value", "bad", "good"),
        say("Good."),
    )
    done = checks.do("change value so that c::two passes", approve="never")
    assert (done.delivery, done.before, done.after) == (
        DeliveryState.DONE,
        Counts(passed=1, failed=1),
        Counts(passed=2),
    )


def test_a_framework_that_cannot_be_used_is_a_mistake_of_the_settings(checks: Story, tmp_path: Path):
    (tmp_path / "frameworks" / "checks.toml").write_text('name = "checks"\n')
    ended = checks.do("run the tests", model="")
    assert ended.trouble is not None and "checks.toml" in ended.trouble.message
    assert ended.trouble.exit_code == ConfigError.exit_code


@pytest.mark.whole
@pytest.mark.spec("A11")
@pytest.mark.parametrize("build", ["! grep -q good value || sleep 30", "sleep 30"], ids=["with the change", "always"])
def test_a_build_that_takes_too_long_is_aborted_and_nothing_is_promoted(checks: Story, tmp_path: Path, build: str):
    before = checks.files()
    (tmp_path / "config.toml").write_text(
        'review = "off"\n[[verify.step]]\nname = "slow"\nkind = "build"\nseconds = 1\ninputs = ["*"]\n'
        f'command = ["sh", "-c", "{build}"]\n'
    )
    checks.model_says(
        {"answer": {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "value"}}]}},
        patch("value", "bad", "good"),
        *(say("Good.") for _ in range(4)),
    )
    ended = checks.do("change value", approve="never")
    assert (ended.delivery, ended.entry) == (DeliveryState.NEEDS_WORK, None), ended
    assert any("slow" in line for line in ended.refused)
    assert checks.files() == before and ended.kept is not None
