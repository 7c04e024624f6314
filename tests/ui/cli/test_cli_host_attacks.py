"""What a workspace prepares for the moment when Pawl starts a program, reads or writes a file on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ui.cli.page_client import PAGE, page
from ui.cli.projects import Project
from ui.cli.test_cli_hooks import Person, person

__all__ = ["person"]
pytestmark = [pytest.mark.hostile, pytest.mark.timeout(120)]

NAMED = {
    "issues in Markdown": ("spec", "issues", "export", "{}.md"),
    "issues in JSON": ("spec", "issues", "export", "{}.json"),
    "the queue": ("queue", "list", "--export", "{}.json"),
    "a recording": ("ask", "--model", "scripted:{home}/script.jsonl", "--record", "{}.jsonl", "why?"),
}
IN_ITS_PLACE = {
    "a link out": "ln -s ../TAKEN {}",
    "a link to a hook of git": "mkdir -p .git/hooks && ln -s .git/hooks/TAKEN {}",
    "a FIFO": "mkfifo {}",
}


@pytest.mark.attack("A01")
@pytest.mark.parametrize("put", IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
@pytest.mark.parametrize("words", NAMED.values(), ids=NAMED)
def test_a_file_that_the_user_names_is_written_nowhere_else(person: Person, words: tuple[str, ...], put: str):
    person.lay(
        {"w/specs/001-x/spec.md": "# x\n", "w/specs/001-x/tasks.md": "# Tasks\n- [ ] T001 `curl x|sh` in a.py\n"}
    )
    person.lay({"script.jsonl": '{"answer": {"text": "so"}, "times": 0}\n'})
    named = words[3 if words[0] != "ask" else 4].format("out")
    subprocess.run(["sh", "-c", put.format(named)], cwd=person.workspace, check=True)
    person.user.own(person.home)
    said = person(*(word.format(f"{person.workspace}/out", home=person.home) for word in words))
    assert said.code in (42, 52) and "cannot be written" in said.err, said
    assert not (person.home / "TAKEN").exists() and not (person.workspace / ".git/hooks/TAKEN").exists()


@pytest.mark.attack("A01")
def test_a_folder_of_the_workspace_leads_no_file_that_the_user_names_out_of_it(person: Person):
    person.lay({"w/specs/001-x/tasks.md": "# Tasks\n- [ ] T001 x in a.py\n"})
    (person.workspace / "out").symlink_to("..")
    (person.workspace / "in").mkdir()
    (person.home / "own.md").symlink_to("elsewhere.md")
    person.user.own(person.home)
    codes = [
        person("spec", "issues", "export", f"{place}.md").code
        for place in (f"{person.workspace}/out/taken", f"{person.workspace}/in/mine", f"{person.home}/own")
    ]
    # What the user's own links say holds.
    assert codes == [42, 0, 0] and (person.home / "elsewhere.md").exists() and not (person.home / "taken.md").exists()


def secret_beside(person: Person, folder: str) -> str:
    person.lay({f"{folder}/diary.txt": "plum basket"})
    return f"{person.home}/{folder}/diary.txt"


@pytest.mark.attack("A12")
def test_no_link_on_the_path_in_the_workspace_shows_a_folder_of_the_users(person: Person):
    diary = secret_beside(person, "private")
    person.lay({"w/node_modules/.bin/.keep": ""})
    (person.workspace / "node_modules/.bin/node").symlink_to(diary)
    (person.home / "tools").symlink_to("w/node_modules/.bin")
    for entry in ("w/node_modules/.bin", "tools"):
        said = person("run", "--", "cat", diary, PATH=f"{person.home}/{entry}:/usr/bin:/bin")
        assert said.code and "plum" not in said.out, said


@pytest.mark.attack("A12")
def test_an_environment_that_the_workspace_names_is_shown_without_what_lies_beside_it(person: Person):
    """Some make the environment in the folder of their project, or install an interpreter beside other things."""
    diary, keys = secret_beside(person, "app"), secret_beside(person, "prefix")
    person.lay(
        {"prefix/bin/python3": "#!/bin/sh\necho ran\n", "prefix/lib/python3.11/os.py": "", "prefix/.env": "A=1\n"}
    )
    person.lay({"app/bin/python": "#!/bin/sh\necho ran\n", "app/pyvenv.cfg": f"home = {person.home}/prefix/bin\n"})
    (person.workspace / ".venv").symlink_to("../app")
    said = person(
        "run", "--", "sh", "-c", f"cat {diary} {keys}; {person.home}/app/bin/python; {person.home}/prefix/bin/python3"
    )
    assert said.out == "ran\nran\n", said


@pytest.mark.attack("A15")
def test_a_program_that_a_search_starts_is_none_of_the_workspace(person: Person):
    """The same holds for editors, `gh`, the keyring and browsers: one function makes their surroundings."""
    search = f"#!/bin/sh\nfetcher; {person.user.python} -c 'import colorsys'; echo x\n"
    person.lay({"w/.venv/bin/fetcher": f"#!/bin/sh\ntouch {person.mark}\n", "bin/search": search})
    person.lay({"w/lib/colorsys.py": f"open({str(person.mark)!r}, 'w')\n"})
    settings = f'[web]\nsearch = ["{person.home}/bin/search"]\n[permissions]\nallow = ["WebSearch"]\n'
    asked = {"answer": {"calls": [{"name": "web_search", "arguments": {"query": "tusks"}}]}}
    person.lay(
        {"config.toml": settings, "script.jsonl": f'{json.dumps(asked)}\n{{"answer": {{"text": "so"}}, "times": 0}}\n'}
    )
    own = {"PATH": f"{person.workspace}/.venv/bin:/usr/bin:/bin", "PAWL_CONFIG": f"{person.home}/config.toml"}
    own["PYTHONPATH"] = f"{person.user.source}:{person.workspace}/lib"
    said = person("ask", "--model", f"scripted:{person.home}/script.jsonl", "who?", **own)
    assert said.code == 0 and not person.mark.exists(), said


@pytest.mark.attack("A15")
@pytest.mark.parametrize(("entry", "at"), [("w", "w"), ("w/src", "w/sub"), ("w", "elsewhere")])
def test_no_module_of_the_project_is_one_of_pawls_though_a_pythonpath_leads_there(person: Person, entry: str, at: str):
    names = ("json", "typing", "argparse", "shutil", "uuid", "tomllib")
    person.lay({f"{entry}/{name}.py": f"open({str(person.mark)!r}, 'w')\n" for name in names})
    person.lay({"w/.git/HEAD": "ref: refs/heads/main\n", f"{at}/.keep": ""})
    words = [
        person.user.python,
        "-P",
        "-B",
        "-m",
        "pawl",
        *(("-C", str(person.workspace)) if at == "elsewhere" else ()),
    ]
    own = person.user.environment(person.home, {"PYTHONPATH": f"{person.home}/{entry}:{person.user.source}"})
    for command in ("history", "locate"):
        called = person.user.words([*words, command, *(("x",) if command == "locate" else ())])
        subprocess.run(called, env=own, cwd=person.home / at, check=False, capture_output=True)
        assert not person.mark.exists(), command


BROWSERS = ("xdg-open", "www-browser", "w3m", "lynx", "links", "elinks", "firefox", "x-www-browser")


@pytest.mark.attack("A15")
def test_the_browser_that_shows_the_page_is_none_of_the_workspace(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({f"bin/{name}": f"#!/bin/sh\ntouch {tmp_path}/MARK\n" for name in BROWSERS})
    for name in BROWSERS:
        (pawl.workspace / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{pawl.workspace}/bin:/usr/bin:/bin")
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    with page(pawl.workspace, opens=True) as tab:
        assert tab.ask("GET", "/").status == 200  # answered after the browser was started
    assert not (tmp_path / "MARK").exists()


@pytest.mark.attack("A55")
def test_no_link_of_a_built_page_is_followed(person: Person):
    """What builds the page is code of the page, which an agent may have written."""
    person.lay({"page/index.html": PAGE, "page/app.js": "1", "private/key.json": "{}"})
    (person.home / "page/key.json").symlink_to("../private/key.json")
    (person.home / "page/deep").symlink_to(".")
    os.mkfifo(person.home / "page/pipe.js")
    code = "import sys; from pawl.ui.web.page_files import page_files\nprint(*sorted(page_files(sys.argv[1])))"
    said = subprocess.run(
        [sys.executable, "-c", code, person.home / "page"], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["/", "/app.js", "/index.html"]
