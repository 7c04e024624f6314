"""Done means done: no command claims what it did not prove.

The rows stand in `done/*.toml`, one file for each part. A row is a project, a request, what the scripted model does and
a command; then which verdict and exit code come of it, and which files may differ in the tree. It may say:

- `project`: a name of `[projects]` in its file, or in `projects.toml` for all; `files`: more of them, `""` for none
- `request`; `turns`: `read`, `patch` with `old` and `new` (and what it `thinks`), `write` with `text`, `call` with
  `arguments`, or `say`; each only where the model was `told` something
- `command`: a name of COMMANDS (`do` is `do --approve never`), or words with REQUEST; `words`: more; `then`: the next,
  or a file that the user writes before it, with `write` and `text`
- `lines`: typed into a session, with the command `session`
- `env`; `settings`; `needs`: programs without which it is skipped
- `exit`; `verdict`; `promoted`: the paths that differ afterwards, none by default; `tree`: paths with what they hold
- `says` and `silent`: what the output holds, and what it does not

TESTED_PAWL=/path/to/pawl plays the table with another one: see docs/verification.md.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ui.cli.console import Pawl, Said
from world import Snapshot, snapshot

HERE = Path(__file__).parent / "done"
COMMANDS: Mapping[str, Sequence[str]] = {
    "do": ("do", "--approve", "never", "REQUEST"),
    "-p": ("-p", "--approve", "never", "REQUEST"),
    "ask": ("do", "REQUEST"),
    "loop": ("loop", "--no-reflex", "--no-generate", "--simple", "1", "--max-iterations", "1", "REQUEST"),
    "fix": ("fix",),
    "verify": ("verify",),
    "session": (),
}
SAID_AGAIN = 12
UNASKED = ("fix", "verify")
"""Commands that ask no model."""
LEFT = frozenset({b".git", b"__pycache__", b".pytest_cache"})

Row = dict[str, Any]


def rows() -> Iterator[Row]:
    shared = _load(HERE / "projects.toml").get("projects", {})
    for file in sorted(HERE.glob("*.toml")):
        part = _load(file)
        for row in part.get("row", []):
            known = {**shared, **part.get("projects", {})}
            files = {**known[row["project"]], **row.get("files", {})}
            yield {**row, "part": file.stem, "files": {path: text for path, text in files.items() if text}}


def _load(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


ROWS = list(rows())


def turn(step: Mapping[str, Any]) -> dict[str, object]:
    """One answer of the model: words, or one call of a tool; where it was `told` something, only to that."""
    if "told" in step:
        return {**turn({key: value for key, value in step.items() if key != "told"}), "match": {"user": step["told"]}}
    match step:
        case {"say": text}:
            return {"answer": {"text": text}}
        case {"read": path}:
            return called("file_read", path=path)
        case {"patch": path, "old": old, "new": new}:
            return called("strict_patch", step.get("thinks", ""), path=path, old=old, new=new)
        case {"write": path, "text": text}:
            return called("file_write", path=path, content=text)
        case {"call": name}:
            return called(name, **step.get("arguments", {}))
    raise AssertionError(f"no step of a model: {step}")


def called(name: str, words: str = "", /, **arguments: object) -> dict[str, object]:
    return {"answer": {"text": words, "calls": [{"name": name, "arguments": arguments}]}}


def played(row: Row, folder: Path) -> Said:
    """What Pawl says when the row is played in the folder."""
    for name, text in row["files"].items():
        (folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "project" / name).write_text(text.lstrip("\n"))
    script = folder / "script.jsonl"
    # Asked again, the model has nothing to add.
    steps = [*row.get("turns", ()), *[{"say": "It is done."}] * SAID_AGAIN]
    script.write_text("".join(json.dumps(turn(step)) + "\n" for step in steps))
    command = row.get("command", "do")
    form = COMMANDS[command] if isinstance(command, str) else command
    words = [row["request"] if word == "REQUEST" else word for word in form]
    model = (
        []
        if command in UNASKED or (isinstance(command, list) and command[0] in UNASKED)
        else ["--model", f"scripted:{script}"]
    )
    lines = [row["request"] if line == "REQUEST" else line for line in row.get("lines", ())]
    row["before"] = tree(folder)
    pawl = Pawl(folder / "project")
    said = pawl(*words, *model, *row.get("words", ()), stdin="".join(f"{line}\n" for line in lines).encode())
    for more in row.get("then", ()):
        if isinstance(more, dict):
            (folder / "project" / more["write"]).write_text(more["text"])
            continue
        after = pawl(*more)
        said = Said(after.code, said.out + after.out, said.err + after.err)
    return said


def tree(folder: Path) -> Snapshot:
    found = snapshot(folder / "project", skip=LEFT)
    return {name: node for name, node in found.items() if LEFT.isdisjoint(name.split(b"/")) and node[0] != "folder"}


@pytest.mark.whole
@pytest.mark.spec("A8", "B9")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("row", ROWS, ids=[f"{row['part']}: {row['name']}" for row in ROWS])
def test_no_command_claims_what_it_did_not_prove(
    row: Row, tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    missing = [name for name in row.get("needs", ()) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    if "settings" in row:
        (tmp_path / "settings.toml").write_text(row["settings"])
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    for name, value in row.get("env", {}).items():
        monkeypatch.setenv(name, value)
    said = played(row, tmp_path)
    text, after = said.out + said.err, tree(tmp_path)
    changed = {
        name.decode() for name in row["before"].keys() | after.keys() if row["before"].get(name) != after.get(name)
    }
    assert changed == set(row.get("promoted", ())), said
    assert said.code == row["exit"], said
    for path, held in row.get("tree", {}).items():
        assert held in after[path.encode()][2].decode(), said
    if "verdict" in row:
        assert f"verdict   {row['verdict']}\n" in text, said
    assert [one for one in row.get("says", ()) if one not in text] == [], said
    assert [one for one in row.get("silent", ()) if one in text] == [], said
