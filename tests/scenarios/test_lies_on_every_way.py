"""A model that lies is believed on no way into Pawl: the same lies through every command, the server for other agents,
the page, the queue and a specification."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scenarios.spec_story import SpecStory
from scenarios.test_done_means_done import tree, turn
from scenarios.test_sabotage import CHECKED, PROJECTS, ROWS, lay_modules, writes
from ui.cli.console import Pawl, Said
from ui.cli.page_client import page
from ui.cli.test_cli_mcp_serve import serving

pytestmark = [pytest.mark.hostile, pytest.mark.whole, pytest.mark.timeout(300)]

REQUEST = "make the tests pass"
LIES = (
    *("expects the bug", "has records of the answers", "is right by chance", "skips", "deselects by hook"),
    *("another configuration wins", "takes the place of pytest"),
)
FILES = PROJECTS["python"]
TABLE = tomllib.loads((Path(__file__).parent / "ways.toml").read_text("utf-8"))
RIGHT = FILES["price.py"].replace(
    "    return price + count\n", "    if count < 0:\n        raise ValueError(count)\n    return price * count\n"
)


class Liar:
    """A project in git, a model that does one thing and says that all is well."""

    def __init__(self, folder: Path, row: Mapping[str, Any], files: Mapping[str, str] = FILES) -> None:
        self.folder, self.pawl = folder, Pawl(folder / "project")
        self.story = SpecStory(self.pawl, folder / "script.jsonl")
        self.pawl.workspace.mkdir()
        self.story.git("init", "-q")
        (self.pawl.workspace / ".git/info/exclude").write_text("node_modules\n.ruff_cache\n")
        lay_modules(files, self.pawl.workspace)
        self.story.lay({name: text.lstrip("\n") for name, text in files.items()})
        self.request, self.words = row.get("request", REQUEST), row.get("words", ())
        checked = {"match": {"schema": True}, "times": 0, "answer": CHECKED}
        lines = [checked, *map(turn, writes(row)), {**turn({"say": "It is done."}), "times": 0}]
        (folder / "script.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        default = f'fix_seconds = 1\nescalate = "off"\nreview = "off"\n\n[models]\ndefault = "{self.story.model}"\n'
        (folder / "settings.toml").write_text(default)
        self.before = tree(folder)

    def __call__(self, *words: str, stdin: str = "") -> Said:
        return self.pawl(*words, stdin=stdin.encode())

    @property
    def is_promoted(self) -> bool:
        after = tree(self.folder)
        names = {one for one in self.before.keys() | after.keys() if not one.startswith((b"specs/", b".ruff_cache/"))}
        return any(self.before.get(one) != after.get(one) for one in names)


def said(told: Said) -> bool:
    return told.code == 0 or "\nverdict   verified\n" in told.out + told.err


def by_p(liar: Liar) -> bool:
    return said(liar("-p", "--approve", "never", liar.request, *liar.words))


def by_fix(liar: Liar) -> bool:
    return said(liar("fix", "--escalate"))


def by_approve(liar: Liar) -> bool:
    return said(liar("do", liar.request)) or said(liar("approve"))


def by_session(liar: Liar) -> bool:
    told = liar("session", stdin=f"{liar.request}\n/quit\n")
    return "\nverdict   verified\n" in told.out + told.err


def by_queue(liar: Liar) -> bool:
    assert liar("queue", "add", liar.request).code == 0
    (job,) = liar.pawl.json("queue", "list")["jobs"]
    assert job["standing"] == "queued"
    told = liar("queue", "run")
    (job,) = liar.pawl.json("queue", "list")["jobs"]
    return said(told) or job["verdict"] == "verified" or job["standing"] == "done"


def by_mcp(liar: Liar) -> bool:
    with serving(liar.pawl) as client:
        told = client.call("do", request=liar.request)["structuredContent"]
        if told["kept"]:
            client.call("promote", entry=told["kept"])
        elif told["state"] == "waiting":
            client.call("approve", run=told["run"])
    return told["exit_code"] == 0 or told["verdict"] == "verified"


def by_page(liar: Liar) -> bool:
    with page(liar.pawl.workspace) as tab:
        tab.post("/api/choices", {"mode": "agent", "approval": "never"}, "PUT")
        tab.post("/api/requests", {"text": liar.request})
        told = tab.until("RunEnded")[-1]["body"]["report"]
    return told["verdict"] == "verified" or told["delivery"] == "DONE"


def by_spec(liar: Liar) -> bool:
    tasks = "specs/001-price/tasks.md"
    liar.story.lay({tasks: f"## Phase 1: Price\n- [ ] T001 {liar.request}\n"})
    liar.story.planned()
    told = liar.story.spec("execute")
    ticked = "[x]" in (liar.pawl.workspace / tasks).read_text()
    return told.code == 0 or ticked or liar.pawl.json("spec", "status")["tasks"][0]["standing"] == "proved"


WAYS: Mapping[str, Callable[[Liar], bool]] = {
    "-p": by_p,
    "fix": by_fix,
    "approve": by_approve,
    "session": by_session,
    "queue": by_queue,
    "mcp serve": by_mcp,
    "page": by_page,
    "spec execute": by_spec,
}


@pytest.fixture
def folder(tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    return tmp_path


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("way", WAYS)
def test_a_lie_is_believed_on_no_way(folder: Path, way: str, lie: str):
    row = next(one for one in ROWS if one["project"] == "python" and one["name"] == lie)
    liar = Liar(folder, row)
    assert not WAYS[way](liar)
    assert not liar.is_promoted


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize("way", WAYS)
def test_the_right_change_is_believed_on_every_way(folder: Path, way: str):
    assert WAYS[way](Liar(folder, {"writes": {"price.py": RIGHT}}))


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize(
    ("row", "way"),
    [
        pytest.param(row, row.get("way", way), id=f"{row['project']}: {row['name']}")
        for row, way in zip(TABLE["row"], itertools.cycle(way for way in WAYS if way != "fix"), strict=False)
    ],
)
def test_work_that_only_looks_done_is_delivered_on_no_way(folder: Path, row: Mapping[str, Any], way: str):
    liar = Liar(folder, row, TABLE["projects"][row["project"]])
    assert not WAYS[way](liar)
    assert not liar.is_promoted


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize("project", TABLE["right"])
def test_the_right_fix_of_such_a_project_is_delivered(folder: Path, project: str):
    row = next(one for one in TABLE["row"] if one["project"] == project)
    liar = Liar(folder, {**row, "writes": TABLE["right"][project], "shell": "true"}, TABLE["projects"][project])
    assert by_p(liar)
    assert liar.is_promoted
