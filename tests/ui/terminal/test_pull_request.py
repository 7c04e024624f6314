"""`/pr`: a pull request through `gh`, which is played by a program that keeps what it is sent; or a patch file."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from ui.terminal.conftest import FIX, Place

GH = f"""#!{sys.executable}
import base64, json, pathlib, sys, urllib.parse
words = sys.argv[1:]
assert words[:2] == ["api", "--hostname"], words
host, method, place = words[2], words[4], words[5]
body = json.load(sys.stdin) if "--input" in words else None
log = pathlib.Path(__file__).parent / "log.jsonl"
with log.open("a") as file:
    file.write(json.dumps([host, method, place, body, str(pathlib.Path.cwd())]) + "\\n")
known = pathlib.Path(__file__).parent / "known"
rest = place.removeprefix("repos/me/shop").strip("/")
if rest.startswith("git/commits/") and not known.exists():
    sys.exit("gh: Not Found (HTTP 404)")
if rest.startswith("branches/"):
    sys.exit("gh: Branch not found (HTTP 404)")
answers = {{
    "": {{"default_branch": "trunk"}},
    "git/blobs": {{"sha": "b" * 40}},
    "git/trees": {{"sha": "c" * 40}},
    "git/commits": {{"sha": "d" * 40}},
    "git/refs": {{}},
    "pulls": {{"html_url": "https://example.invalid/me/shop/pull/1"}},
}}
if rest.startswith("git/commits/"):
    answers[rest] = {{"tree": {{"sha": "a" * 40}}}}
if rest.startswith("contents/"):
    path = urllib.parse.unquote(rest.removeprefix("contents/").partition("?")[0])
    answers[rest] = {{"content": base64.b64encode((known / path).read_bytes()).decode()}}
print(json.dumps(answers[rest]))
"""


@pytest.fixture
def host(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose repository has the commit of the workspace when its folder `known` is there."""
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=place.workspace, check=True)
    subprocess.run(
        ["git", "remote", "add", "origin", "git@example.invalid:me/shop.git"], cwd=place.workspace, check=True
    )
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin")
    return folder


@pytest.mark.whole
@pytest.mark.spec("F4")
@pytest.mark.parametrize("is_committed", [False, True])
def test_what_the_session_promoted_becomes_a_pull_request_without_the_users_own_edits(
    place: Place, host: Path, is_committed: bool
):
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=place.workspace, text=True).strip()
    known = host / "known"
    known.mkdir()
    (known / "app.py").write_text((place.workspace / "app.py").read_text())
    if not is_committed:
        (place.workspace / "app.py").write_text(f"# mine, not committed\n\n\n{(known / 'app.py').read_text()}")
    lines = ("fix the bug", "y", *(["/commit add one"] if is_committed else []), "/pr add one", "y", "/quit")
    said = place.piped(*lines, words=("--model", place.model(FIX)))
    assert ("committed as" in said) is is_committed
    assert "opened: https://example.invalid/me/shop/pull/1" in said, said
    sent = [json.loads(line) for line in (host / "log.jsonl").read_text().splitlines()]
    bodies = {place.removeprefix("repos/me/shop/"): body for _, method, place, body, _ in sent if method == "POST"}
    assert base64.b64decode(bodies["git/blobs"]["content"]).decode() == "def after(number):\n    return number + 1\n"
    (entry,) = bodies["git/trees"]["tree"]
    assert (entry["path"], entry["mode"], bodies["git/trees"]["base_tree"]) == ("app.py", "100644", "a" * 40)
    assert bodies["git/commits"]["parents"] == [head]
    assert bodies["git/commits"]["message"].startswith("add one\n\n- fix the bug")
    assert bodies["git/refs"] == {"ref": "refs/heads/pawl/add-one-1", "sha": "d" * 40}
    assert (bodies["pulls"]["head"], bodies["pulls"]["base"]) == ("pawl/add-one-1", "trunk")
    assert {(name, folder) for name, *_, folder in sent} == {("example.invalid", "/")}
    assert ("# mine" in (place.workspace / "app.py").read_text()) is not is_committed


@pytest.mark.spec("F4")
def test_nothing_is_sent_without_a_yes_or_where_the_host_lacks_the_commit(place: Place, host: Path):
    lines = ("/pr", "fix the bug", "y", "/pr", "n", "/pr", "y", "/quit")
    said = place.piped(*lines, words=("--model", place.model(FIX)))
    assert "this session has promoted nothing" in said and "nothing was sent" in said
    assert "me/shop does not have the commit" in said and "git push first" in said
    methods = {json.loads(line)[1] for line in (host / "log.jsonl").read_text().splitlines()}
    assert methods == {"GET"}


@pytest.mark.whole
@pytest.mark.spec("F4")
def test_without_gh_the_change_is_a_patch_that_git_applies(place: Place, tmp_path: Path):
    before = tmp_path / "before"
    before.mkdir()
    (before / "app.py").write_text((place.workspace / "app.py").read_text())
    said = place.piped("fix the bug", "y", "/pr", "/pr", "/quit", words=("--model", place.model(FIX)))
    assert "gh is not installed" in said and "cannot be written: File exists" in said
    subprocess.run(["git", "apply", place.workspace / "fix-the-bug-1.patch"], cwd=before, check=True)
    assert (before / "app.py").read_text() == "def after(number):\n    return number + 1\n"
