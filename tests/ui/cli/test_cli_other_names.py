"""What is secret, protected or denied is so under every name: through links of the user's, of a run, and hard links."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from ui.cli.house import House, held

CANARY = "canary-51c7"
PROTECTED = ("protected", "")
pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4"), pytest.mark.attack("A26")]


def told(house: House, *words: str, **calls: dict[str, object]) -> str:
    """What is said of a command whose model makes these calls, and tells when one of them shows it a secret."""
    lines = [{"answer": {"text": "", "calls": [{"name": name, "arguments": one}]}} for name, one in calls.items()]
    leak = {"match": {"tool": CANARY}, "answer": {"text": "LEAKED"}, "times": 0}
    script = house.folder / "model.jsonl"
    script.write_text(
        "".join(json.dumps(line) + "\n" for line in (leak, *lines, {"answer": {"text": "done"}, "times": 0}))
    )
    house.user.own(script)
    _, out, err = house(*words, "--model", f"scripted:{script}")
    return out + err


@pytest.mark.parametrize(
    ("script", "links"),
    [
        ("mkdir cfg; echo x > cfg/config.toml; ln -s cfg .cargo", {".cargo"}),
        ("mkdir t; echo x > t/bazel; ln -s t tools", {"tools"}),
        ("mkdir -p sub/w; echo x > sub/w/a.jar; ln -s sub gradle", {"gradle"}),
        ("mkdir -p gh/workflows; echo x > gh/workflows/ci.yml; ln -s gh .github", {".github"}),
        ("mkdir -p .github gh; echo x > gh/ci.yml; ln -s ../gh .github/workflows", {".github/workflows"}),
        ("mkdir k; ln -s k .kube", {".kube"}),
    ],
)
def test_a_link_that_could_show_protected_files_needs_a_yes(house: House, script: str, links: set[str]):
    said = house.applied(f"{script}; echo b > a.txt")
    assert {path: held(said).get(path) for path in links} == dict.fromkeys(links, PROTECTED)
    assert not any(os.path.lexists(house.workspace / path) for path in links)
    assert (house.workspace / "a.txt").read_text() == "b\n"
    patch = "".join(
        f"--- /dev/null\n+++ b/{link}\n@@ -0,0 +1 @@\n+src\n\\ No newline at end of file\n" for link in links
    )
    patch = patch.replace("--- ", "diff --git a/{0} b/{0}\nnew file mode 120000\n--- ".format(*links), 1)
    code, _, err = house("patch", "--yes", "-", stdin=patch)
    assert code == 1 and "is protected" in err, err


@pytest.mark.parametrize(
    "link", [("tools/vscode", ".vscode"), ("a/../tools/vscode", ".vscode"), ("../w/tools/vscode", ".vscode")]
)
def test_what_the_users_links_show_under_a_protected_name_is_protected(house: House, link: tuple[str, str]):
    house.lay(
        {"tools/vscode/tasks.json": b"{}\n", "a/": None, link[1]: link[0], "envdev.sh": b"\n", ".envrc": "envdev.sh"}
    )
    house.lay({"chain/tasks.json": b"{}\n", "deep/.idea": "../middle", "middle": "chain"})
    script = (
        "for f in tools/vscode/tasks.json tools/vscode/new.json envdev.sh chain/tasks.json; do echo evil > $f; done"
    )
    said = house.applied(f"{script}; echo b > a.txt")
    paths = {"tools/vscode/tasks.json", "tools/vscode/new.json", "envdev.sh", "chain/tasks.json"}
    assert {path: held(said).get(path) for path in paths} == dict.fromkeys(paths, PROTECTED)
    assert (house.workspace / "a.txt").read_text() == "b\n"
    assert (house.workspace / "envdev.sh").read_text() == "\n"
    code, _, err = house("patch", "--yes", "--path", "envdev.sh", "--old", "\n", "--new", "evil\n")
    assert code == 1 and "is protected" in err
    text = told(house, "do", "write", "it", "--approve", "never", file_write={"path": "envdev.sh", "content": "x"})
    assert (house.workspace / "envdev.sh").read_text() == "\n", text


def test_a_link_of_the_users_is_not_turned_to_other_protected_files(house: House):
    house.lay({"real/cargo/notes.txt": b"", "evil/cargo/config.toml": b"evil\n", ".cargo": "way/cargo", "way": "real"})
    said = house.applied("rm way; ln -s evil way; echo b > a.txt")
    assert held(said) == {"way": PROTECTED}
    assert os.readlink(house.workspace / "way") == "real"


SECRETS = {
    "conf/settings.txt": CANARY.encode(), ".env": "conf/settings.txt", "server.key": CANARY.encode(),
    "k/config": CANARY.encode(), ".kube": "k", "d/config.json": CANARY.encode(), "home/.docker": "../d",
    "c/gh": "../g", "g/hosts.yml": CANARY.encode(), ".config": "c",
}  # fmt: skip
HIDDEN = ("conf/settings.txt", "notes.txt", "k/config", "d/config.json", "g/hosts.yml")


def test_a_secret_is_one_for_commands_and_for_what_they_write_under_every_name(house: House):
    house.lay(SECRETS)
    os.link(house.workspace / "server.key", house.workspace / "notes.txt")
    every = " ".join(HIDDEN)
    writes = f"for f in {every}; do rm $f; echo x > $f; done; echo b > a.txt"
    said = house.applied(f"cat {every} .kube/config home/.docker/config.json; {writes}")
    assert CANARY not in json.dumps(said)
    assert {path: held(said).get(path) for path in HIDDEN} == dict.fromkeys(HIDDEN, ("secret", ""))
    assert all((house.workspace / path).read_text() == CANARY for path in HIDDEN)
    assert CANARY not in house("diff")[1]
    assert (house.workspace / "a.txt").read_text() == "b\n"


@pytest.mark.parametrize("path", HIDDEN)
def test_no_tool_reads_a_secret_under_another_name(house: House, path: str):
    house.lay(SECRETS)
    os.link(house.workspace / "server.key", house.workspace / "notes.txt")
    calls = {"file_read": {"path": path}, "file_search": {"query": CANARY[:6]}, "outline": {"path": path}}
    said = told(house, "ask", "what is in the notes?", **calls)
    assert "done" in said and f"· file_read {path}" in said
    assert "LEAKED" not in said
    code, out, err = house("patch", "--yes", "--path", path, "--old", CANARY, "--new", "x")
    assert code == 1 and "holds secrets" in err, (out, err)


@pytest.mark.parametrize("rule", ["Edit(prod/**)", "Edit(prod)", "Edit(live/m.py)"])
def test_a_rule_holds_under_every_name_of_a_file(house: House, rule: str):
    house.set(f'[permissions]\ndeny = ["{rule}"]\n')
    house.lay({"prod": "src", "live": "prod"})
    said = house.applied("echo y > src/m.py; echo b > a.txt", "--allow-protected")
    assert held(said) == {"src/m.py": ("denied", rule)}
    assert (house.workspace / "src/m.py").read_text() == "x = 1\n"
    for call in ("Edit(src/m.py)", "Edit(live/m.py)"):
        assert house.json("permissions", "check", call)["ruling"] == "deny"
    house.set('[permissions]\ndeny = ["Read(src/**)"]\n')
    assert house.json("permissions", "check", "Bash(cat live/m.py)")["ruling"] == "deny"


@pytest.mark.parametrize(
    "rule", ["Edit(migrations/[0-9]*.sql)", "Edit({schema,migrations}/*.sql)", "Edit(migrations/000[!2-9].sql)"]
)
def test_brackets_and_braces_of_a_rule_count(house: House, rule: str):
    house.set(f'[permissions]\ndeny = ["{rule}"]\n')
    said = house.applied("echo x > migrations/0001.sql; echo b > a.txt", "--allow-protected")
    assert held(said) == {"migrations/0001.sql": ("denied", rule)}
    house.lay({"app/[id]/page.tsx": b"a\n"})
    house.set('[permissions]\ndeny = ["Edit(app/[id]/**)"]\n')
    assert held(house.applied("echo x > 'app/[id]/page.tsx'")) == {"app/[id]/page.tsx": ("denied", "Edit(app/[id]/**)")}


@pytest.mark.parametrize("what", ["{a/b,c}/**", "[a/b]", "x[z-a]", "{a,{b,c}}", "x[[:digit:]]", "a{b", "{a,b}" * 7])
def test_a_rule_that_cannot_be_read_is_refused_by_name(house: House, what: str):
    house.set(f'[permissions]\ndeny = ["Edit({what})"]\n')
    code, _, err = house("run", "--apply", "--", "true")
    assert code == 52 and f"Edit({what})" in err and "cannot be read as a pattern" in err


def test_a_chain_of_more_links_than_the_system_follows_is_not_taken_for_one_that_stays_inside(house: House):
    links = {f"l{number}": f"l{number + 1}" for number in range(60)}
    house.lay({**links, "l60": "../../outside"})
    said = house.applied("ln -s l0 mine; echo b > a.txt")
    assert held(said)["mine"][0] == "link out of the workspace"
    assert not os.path.lexists(house.workspace / "mine")


def test_a_workspace_full_of_links_to_itself_has_nothing_changed_without_a_yes(house: House):
    house.lay({f"self{number}": "." for number in range(60)})
    said = house.applied("echo b > a.txt")
    assert held(said).keys() == {"a.txt"}


def test_a_linked_worktree_shows_nothing_of_its_repository_but_what_git_reads(house: House):
    main, tree = house.folder / "main", house.folder / "w2"
    for words in (
        ["init", "-q", str(main)],
        ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "first"],
        ["-C", str(main), "worktree", "add", "-q", str(tree)],
        ["-C", str(main), "worktree", "add", "-q", str(house.folder / "w3")],
    ):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *words], check=True)
    for name in ("deploy.key", ".git-credentials", "hooks/notes", "worktrees/w3/notes", "plain.txt"):
        (main / ".git" / name).write_text(CANARY)
    house.user.own(house.folder)
    code, out, err = house(
        "run",
        "--",
        "sh",
        "-c",
        f"cd {tree} && git log --oneline && git status --short && grep -r {CANARY} {main}; true",
        at=tree,
    )
    assert code == 0 and "first" in out, (out, err)
    assert CANARY not in out
