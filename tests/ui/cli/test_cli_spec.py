"""`pawl spec` without a model: tasks that are analyzed, put into waves and told, in a project of Spec Kit's layout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.test_cli_docs import ROOT, keys

from pawl.agent.specification.task_list import read_tasks

SPEC = """\
# Feature Specification: Word count

### User Story 1 - Count words (Priority: P1)

### User Story 2 - Count lines (Priority: P2)

- **FR-001**: The command counts words
- **FR-002**: It counts lines [NEEDS CLARIFICATION: empty ones too?]
"""
TASKS = """\
# Tasks: Word count

## Phase 1: Setup
- [ ] T001 Package in src/wc/__init__.py

## Phase 2: User Story 1
- [ ] T002 [P] [US1] Counter in src/wc/words.py (FR-001)
- [ ] T003 [P] [US1] Reader in src/wc/reader.py
- [ ] T004 [P] [US1] Options in src/wc/reader.py
- [ ] T005 [US1] Put it together
"""


def laid(root: Path, **parts: str) -> None:
    for name, text in parts.items():
        path = root / "specs/001-word-count" / f"{name.replace('_', '-')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.spec("E11")
def test_tasks_become_waves_in_a_file_that_can_be_undone(repository: Pawl):
    laid(repository.workspace, spec=SPEC, tasks=TASKS)
    plan = repository.workspace / "specs/001-word-count/execution-plan.md"
    dry, made, again, status, undone = repository.many(
        [
            ("spec", "orchestrate", "--dry-run"),
            ("spec", "orchestrate"),
            ("spec", "orchestrate", "--json", "--spec", "1"),
            ("spec", "status"),
            ("undo",),
        ]
    )
    assert (dry.code, made.code, again.code, status.code, undone.code) == (0, 0, 0, 0, 0), (dry, made, again, status)
    assert made.lines[:3] == ["wave 1: T001", "wave 2: T002, T003", "wave 3: T004"]
    assert '"waves": [["T001"], ["T002", "T003"], ["T004"], ["T005"]]' in again.out and '"entry": null' in again.out
    assert "T004  wave 3  open" in status.out and "next: pawl spec execute" in status.out
    assert not plan.exists()


@pytest.mark.spec("E11", "B6")
def test_the_estimate_is_told_at_the_prices_of_the_users_model(repository: Pawl, tmp_path: Path, monkeypatch):
    (tmp_path / "prices.toml").write_text(
        '[models]\ndefault = "openai/mine"\n[prices."openai/mine"]\ninput = 1\noutput = 11\n'
    )
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "prices.toml"))
    laid(repository.workspace, tasks=TASKS)
    assert repository.json("spec", "orchestrate")["estimated_cost"] == 0.2
    assert "0 tokens for the tasks of about 100,000 ($0.20) estimated" in repository("spec", "status").out


@pytest.mark.spec("E11")
def test_what_changes_in_the_specification_after_its_tasks_were_made_is_drift(repository: Pawl):
    known = SPEC.replace("[NEEDS CLARIFICATION: empty ones too?]", "")
    tasks = TASKS.replace("[US1] Put it together", "[US2] Put it together in src/wc/main.py (FR-002)")
    laid(repository.workspace, spec=known, plan="# Plan\n", tasks=tasks)
    assert repository("spec", "orchestrate").code == 0
    assert repository.json("spec", "status")["drift"] == []
    laid(repository.workspace, spec=f"{known}- **FR-003**: It counts bytes\n")
    status = repository.json("spec", "status")
    told = [f"{one['where']}: {one['what']}" for one in status["drift"]]
    assert told[1:] == ["spec.md: no task covers FR-003"] and "spec.md: has changed since" in told[0]
    assert status["next_step"] == "pawl spec plan"
    laid(repository.workspace, spec=known, plan="# Another plan\n", tasks=tasks.replace("[ ] T001", "[x] T001"))
    (repository.workspace / "src/wc").mkdir(parents=True)
    (repository.workspace / "src/wc/__init__.py").touch()
    status = repository.json("spec", "status")
    assert [one["where"] for one in status["drift"]] == ["plan.md"] and status["next_step"] == "pawl spec execute"


def test_every_key_that_programs_are_told_is_on_the_page(repository: Pawl):
    laid(repository.workspace, spec=SPEC, tasks=TASKS)
    asked = ("new idea --dry-run", "orchestrate", "analyze", "status", "execute --dry-run", "issues export issues.json")
    said = repository.many([("--json", "spec", *words.split()) for words in (*asked, "issues import issues.json")])
    page = (ROOT / "docs/commands/spec.md").read_text()
    told = {key for one in said for key in keys(json.loads(one.out))}
    assert {key for key in told if f"`{key}`" not in page} == set()


@pytest.mark.spec("E11")
def test_what_contradicts_the_specification_is_found_without_a_model(repository: Pawl):
    laid(repository.workspace, spec=SPEC, tasks=TASKS.replace("[ ] T001", "[x] T001").replace("FR-001", "FR-009"))
    found = repository.json("spec", "analyze", code=1)
    told = {one["what"] for one in found["findings"] if one["level"] == "error"}
    assert told >= {
        "user story 2 has no task [US2]",
        "T002 covers FR-009, which is not in spec.md",
        "T001 is ticked, but src/wc/__init__.py does not exist",
    }
    assert any("NEEDS CLARIFICATION" in one for one in told)
    assert {"level": "warning", "where": "plan.md", "what": "does not exist", "drift": False} in found["findings"]


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "tasks, words, told",
    [
        (None, ("orchestrate",), "begin one with: pawl spec specify"),
        ("", ("orchestrate",), "tasks.md does not exist"),
        ("# nothing\n", ("orchestrate",), "holds no task that can be read"),
        (TASKS, ("status", "--spec", "7"), "no specification is called '7'"),
        (TASKS.replace("words.py", "words.py (depends on T005)"), ("orchestrate",), "wait for each other"),
    ],
)
def test_what_cannot_be_planned_is_told_with_the_next_step(repository: Pawl, tasks, words, told: str):
    if tasks is not None:
        laid(repository.workspace, tasks=tasks)
    said = repository("spec", *words)
    assert said.code == 42 and told in said.err, said


@pytest.mark.spec("E11")
@pytest.mark.parametrize("name", ["issues.json", "issues.md"])
def test_tasks_go_to_issues_and_come_back_ticked_and_with_new_ones(repository: Pawl, name: str):
    laid(repository.workspace, tasks=TASKS)
    file = repository.workspace / name
    assert repository("spec", "issues", "export", name).lines == [f"5 issues in {name}"]
    text = file.read_text()
    if name.endswith(".json"):
        text = text.replace('"state": "open"', '"state": "closed"', 1)
        text = text.replace('"issues": [', '"issues": [{"title": "Count bytes in src/wc/bytes.py", "number": 7},')
    else:
        text = text.replace("State: open", "State: closed", 1) + "\n## Count bytes in src/wc/bytes.py\n"
    file.write_text(text)
    found = repository.json("spec", "issues", "import", name)
    assert (found["ticked"], found["new"]) == (["T001"], ["T006"])
    tasks = (repository.workspace / "specs/001-word-count/tasks.md").read_text()
    assert tasks.startswith(TASKS.replace("[ ] T001", "[x] T001").rstrip())
    assert "- [ ] T006 Count bytes in src/wc/bytes.py" in tasks
    again = repository.json("spec", "issues", "import", name)
    assert again == {"spec": "001-word-count", "ticked": [], "reopened": [], "new": [], "entry": None}


@pytest.mark.spec("E11")
@pytest.mark.parametrize("name", ["issues.json", "issues.md"])
def test_issues_of_another_specification_keep_their_files_proof_and_dependencies(repository: Pawl, name: str):
    details = "  - Files: src/cart.py, src/prices.py\n  - Proof: `pytest a b`, `tests/test_c.py`\n  - Test first: yes\n"
    theirs = f"## Phase 1\n- [ ] T001 Sum up\n{details}- [x] T002 Show it in b.py (depends on T001), FR-002\n"
    laid(repository.workspace, tasks=TASKS)
    other = repository.workspace / "specs/002-shop/tasks.md"
    other.parent.mkdir()
    other.write_text(theirs)
    assert repository("spec", "issues", "export", name, "--spec", "2").code == 0
    found = repository.json("spec", "issues", "import", name, "--spec", "1")
    assert (found["ticked"], found["new"]) == ([], ["T006", "T007"])
    told = (repository.workspace / "specs/001-word-count/tasks.md").read_text()
    assert f"- [ ] T006 Sum up\n{details}- [x] T007 Show it in b.py (depends on T006), FR-002\n" in told
    first, second = read_tasks(told).tasks[5:]
    assert first.files == ("src/cart.py", "src/prices.py") and first.proof == ("pytest a b", "tests/test_c.py")
    assert first.test_first and second.after == ("T006",) and second.covers == ("FR-002",)
    assert repository.json("spec", "issues", "import", name, "--spec", "1")["new"] == []


@pytest.mark.spec("E11")
def test_issues_of_the_host_are_known_by_their_number_and_open_a_task_when_they_are_reopened(repository: Pawl):
    laid(repository.workspace, tasks=TASKS.replace("[ ] T002", "[x] T002"))
    tasks = repository.workspace / "specs/001-word-count/tasks.md"

    def imported(**more: str) -> dict:
        rows = [{"number": 7, "title": more.pop("title", "Bytes"), "state": "OPEN", "body": "Files: bytes.py\n"}]
        rows += [{"number": 2, "title": "T002: Counter", "state": "OPEN", **more}]
        (repository.workspace / "gh.json").write_text(json.dumps(rows))
        return repository.json("spec", "issues", "import", "gh.json")

    # One that was never closed says nothing against a task that is done.
    assert imported()["new"] == ["T006"] and "[x] T002" in tasks.read_text()
    assert "- [ ] T006 Bytes (#7)\n  - Files: bytes.py\n" in tasks.read_text()
    again = imported(title="Count bytes", stateReason="REOPENED")
    assert (again["new"], again["reopened"]) == ([], ["T002"]) and "[ ] T002" in tasks.read_text()
    (repository.workspace / "gh.json").write_text('[{"number": 9, "title": "x", "body": "Depends on: T099"}]')
    lost = repository("spec", "issues", "import", "gh.json")
    assert lost.code == 42 and "'x' depends on T099, which is neither a task here" in lost.err, lost


@pytest.mark.spec("E11")
def test_issues_need_a_file_or_a_host(repository: Pawl):
    laid(repository.workspace, tasks=TASKS)
    (repository.workspace / "odd.json").write_text("[1]")
    nothing, odd, host = repository.many(
        [("spec", "issues"), ("spec", "issues", "import", "odd.json"), ("spec", "issues", "export", "--github")]
    )
    assert nothing.code == odd.code == host.code == 42
    assert "'export' or 'import'" in nothing.err and "no list of issues" in odd.err
    assert "gh" in host.err or "origin" in host.err


GH = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
if (here / "out").exists():
    sys.exit("To get started with GitHub CLI, please run:  gh auth login")
with (here / "log.jsonl").open("a") as file:
    file.write(json.dumps([str(pathlib.Path.cwd()), *words]) + "\\n")
issues = json.loads((here / "issues.json").read_text())
if words[:2] == ["issue", "create"]:
    title = words[words.index("--title") + 1]
    issues.append({{"title": title, "body": "", "state": "OPEN", "number": len(issues) + 1}})
    (here / "issues.json").write_text(json.dumps(issues))
    print(f"https://example.invalid/me/shop/issues/{{len(issues)}}")
elif words[:2] == ["issue", "list"]:
    print(json.dumps(issues))
"""


@pytest.fixture
def host(repository: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with one issue that no task has, through a `gh` that keeps what it is asked."""
    laid(repository.workspace, tasks=TASKS)
    address = "git@example.invalid:me/shop.git"
    for words in (["add", "."], ["commit", "-qm", "first"], ["remote", "add", "origin", address]):
        subprocess.run(["git", *words], cwd=repository.workspace, check=True)
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "issues.json").write_text('[{"title": "Count bytes", "body": "", "state": "CLOSED", "number": 1}]')
    monkeypatch.setenv("PATH", f"{folder}:{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin")
    return folder


@pytest.mark.spec("E11")
def test_tasks_go_to_the_issues_of_the_host_once_and_come_back_by_their_state(repository: Pawl, host: Path):
    made = repository.json("spec", "issues", "export", "--github")["created"]
    assert made == [f"https://example.invalid/me/shop/issues/{number}" for number in range(2, 7)]
    assert repository.json("spec", "issues", "export", "--github")["created"] == []
    asked = [json.loads(line) for line in (host / "log.jsonl").read_text().splitlines()]
    create = ["issue", "create", "--title", "T001: Package in src/wc/__init__.py", "--body"]
    assert asked[2][1:6] == create and "Files: src/wc/__init__.py" in asked[2][6]
    # Where `gh` would start git, no workspace configures it.
    assert {one[0] for one in asked} == {"/"} and all(
        one[-2:] == ["--repo", "example.invalid/me/shop"] for one in asked
    )
    issues = (host / "issues.json").read_text()
    (host / "issues.json").write_text(issues.replace('"OPEN"', '"CLOSED"', 1))
    found = repository.json("spec", "issues", "import", "--github")
    assert (found["ticked"], found["new"]) == (["T001"], ["T006"])
    # An issue that became a task is that task's issue.
    assert repository.json("spec", "issues", "export", "--github")["created"] == []
    assert "- [x] T006 Count bytes (#1)" in (repository.workspace / "specs/001-word-count/tasks.md").read_text()
    standings = {one["id"]: one["standing"] for one in repository.json("spec", "status")["tasks"]}
    # Whoever closes an issue has proved nothing.
    assert standings["T001"] == standings["T006"] == "done" and standings["T002"] == "open"


@pytest.mark.attack("A12")
@pytest.mark.spec("E11")
def test_a_host_that_a_repository_names_is_given_no_key_of_another(
    repository: Pawl, host: Path, monkeypatch: pytest.MonkeyPatch
):
    """`gh` sends the key for hosts of companies to every host but its makers'."""
    (host / "gh").write_text(f"#!/bin/sh\necho ${{GH_ENTERPRISE_TOKEN-none}} >> {host}/given\necho '[]'\n")
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", "Vt5mQ2zRk8wYc3NpX7bJ")
    for own in ("git.corp.invalid", "example.invalid"):
        monkeypatch.setenv("GH_HOST", own)
        assert repository("spec", "issues", "import", "--github").code == 0
    assert (host / "given").read_text().split() == ["none", "Vt5mQ2zRk8wYc3NpX7bJ"]


@pytest.mark.spec("E11")
def test_a_host_that_is_not_logged_in_to_is_told_and_nothing_changes(repository: Pawl, host: Path):
    (host / "out").touch()
    for action in ("export", "import"):
        said = repository("spec", "issues", action, "--github")
        assert said.code == 1 and "gh auth login" in said.err, said
    assert (repository.workspace / "specs/001-word-count/tasks.md").read_text() == TASKS


@pytest.mark.hostile
@pytest.mark.spec("E11")
def test_a_program_of_the_workspace_called_gh_is_not_run(repository: Pawl, host: Path, monkeypatch: pytest.MonkeyPatch):
    (repository.workspace / "gh").write_text("#!/bin/sh\ntouch ran\n")
    (repository.workspace / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository.workspace}:/usr/bin:/bin")
    said = repository("spec", "issues", "import", "--github")
    assert said.code == 42 and "gh is not installed" in said.err, said
    assert not (repository.workspace / "ran").exists()


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "words, told",
    [
        (("specify",), "there is no idea"),
        (("new",), "there is no idea"),
        (("plan",), "spec.md does not exist"),
        (("tasks",), "plan.md does not exist"),
        (("analyze", "all"), "takes no 'all'"),
    ],
)
def test_a_step_that_lacks_what_it_reads_names_the_step_before_it(repository: Pawl, words, told: str):
    laid(repository.workspace, tasks=TASKS)
    said = repository("spec", *words)
    assert said.code == 42 and told in said.err, said


@pytest.mark.spec("E11")
def test_a_step_shows_its_request_which_is_bound_to_the_folder(repository: Pawl):
    (repository.workspace / ".specify/templates").mkdir(parents=True)
    (repository.workspace / ".specify/templates/spec-template.md").write_text(
        "# Feature Specification: [FEATURE NAME]\n"
    )
    (repository.workspace / ".specify/memory").mkdir()
    (repository.workspace / ".specify/memory/constitution.md").write_text("# Laws\n\n### Library first\n")
    said = repository("spec", "new", "--dry-run", "I want to count the words of a text")
    assert said.code == 0, said
    assert "Scope: specs/001-count-words-text/" in said.out
    assert "Follow the template .specify/templates/spec-template.md." in said.out
    assert "Keep to .specify/memory/constitution.md." in said.out
