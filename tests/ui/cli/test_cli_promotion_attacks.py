"""What a change set cannot bring into the workspace, whoever made it: tried through the commands, as root and not."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
from git_traps import git
from ui.cli.house import CALL, House, held
from world import lay

pytestmark = pytest.mark.hostile

RULES = '[permissions]\ndeny = ["Edit(migrations/**)"]\nask = ["Edit(schema/**)"]\n'


def outside(house: House) -> list[str]:
    """The links of the workspace that lead out of it."""
    root = os.path.realpath(house.workspace)
    found = []
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if os.path.islink(path) and not (os.path.realpath(path) + "/").startswith(root + "/"):
                found.append(os.path.relpath(path, root))
    return sorted(found)


DENIED = ("denied", "Edit(migrations/**)")


@pytest.mark.spec("D8")
def test_a_file_that_may_not_be_removed_may_still_be_changed(house: House):
    house.set('[permissions]\ndeny = ["Delete(kept.txt)"]\n')
    house.lay({"kept.txt": b"1", "other.txt": b"1"})
    said = house.applied("rm kept.txt other.txt; mkdir kept.txt", "--allow-protected")
    assert held(said)["kept.txt"] == ("denied", "Delete(kept.txt)")
    assert (house.workspace / "kept.txt").read_text() == "1" and not (house.workspace / "other.txt").exists()
    assert held(house.applied("echo 2 > kept.txt")) == {}
    assert (house.workspace / "kept.txt").read_text() == "2\n"


@pytest.mark.spec("F4")
@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("echo x >> migrations/0001.sql", {"migrations/0001.sql"}),
        ("echo x > migrations/0002.sql", {"migrations/0002.sql"}),
        ("rm migrations/0001.sql", {"migrations/0001.sql"}),
        ("chmod 755 migrations/0001.sql", {"migrations/0001.sql"}),
        ("mv migrations/0001.sql src/", {"migrations/0001.sql"}),
        ("ln -sf ../a.txt migrations/0001.sql", {"migrations/0001.sql"}),
        ("mkdir Migrations; echo x > Migrations/0001.sql", {"Migrations", "Migrations/0001.sql"}),
        ("mkdir ./migrations/deep; echo x > ./src/../migrations/deep/x", {"migrations/deep", "migrations/deep/x"}),
        ("ln -s migrations m; echo x > m/0002.sql", {"migrations/0002.sql"}),
    ],
)
def test_a_rule_that_denies_holds_for_what_a_command_wrote(house: House, script: str, paths: set[str]):
    house.set(RULES)
    said = house.applied(f"{script}; echo b > a.txt", "--allow-protected")
    found = held(said)
    assert {path: found.get(path) for path in paths} == dict.fromkeys(paths, DENIED)
    assert (house.workspace / "a.txt").read_text() == "b\n"
    assert (house.workspace / "migrations/0001.sql").read_text() == "create\n"
    assert sorted(os.listdir(house.workspace / "migrations")) == ["0001.sql"]
    assert not (house.workspace / "Migrations").exists()


@pytest.mark.spec("F4")
def test_a_folder_with_denied_files_is_not_replaced(house: House):
    house.set('[permissions]\ndeny = ["Write(db/migrations/*.sql)"]\n')
    house.lay({"db/migrations/1.sql": b"1\n", "evil/migrations/1.sql": b"2\n"})
    for script in ("rm -r db; ln -s evil db", "rm -r db; mv evil db", "rm -r db/migrations; echo x > db/migrations"):
        house.applied(script, "--allow-protected")
        assert (house.workspace / "db/migrations/1.sql").read_text() == "1\n"
        assert not (house.workspace / "db").is_symlink()


@pytest.mark.spec("F4")
def test_a_link_does_not_show_other_files_under_a_name_that_is_denied(house: House):
    house.set('[permissions]\ndeny = ["MultiEdit(./db/migrations/)"]\n')
    said = house.applied("mkdir -p evil/migrations; echo x > evil/migrations/1.sql; ln -s evil db")
    assert held(said) == {"db": ("denied", "MultiEdit(./db/migrations/)")}
    assert not os.path.lexists(house.workspace / "db")


@pytest.mark.spec("F4")
@pytest.mark.parametrize(
    "rule", ["Edit(./migrations/**)", "Edit(/migrations/)", "Write(migrations)", "line_edit(migrations/**)", "Edit"]
)
def test_each_way_to_write_a_rule_counts(house: House, rule: str):
    house.set(f'[permissions]\ndeny = ["{rule}"]\n')
    said = house.applied("echo x > migrations/2; true")
    assert held(said) == {"migrations/2": ("denied", rule)}


@pytest.mark.spec("F4")
def test_rules_from_the_root_and_from_home_count_behind_links_too(house: House):
    (house.folder / "short").symlink_to("w")
    house.set(
        f'[permissions]\ndeny = ["Edit(//{str(house.folder)[1:]}/short/migrations/**)", "Edit(~/short/src/**)"]\n'
    )
    said = house.applied("echo x > migrations/2; echo y > src/y")
    assert set(held(said)) == {"migrations/2", "src/y"}


@pytest.mark.spec("F4")
def test_names_are_compared_in_every_spelling_of_unicode(house: House):
    house.set('[permissions]\ndeny = ["Edit(caf\u00e9/**)"]\n')
    said = house.applied(
        "mkdir 'cafe\u0301'; echo x > 'cafe\u0301/x'; mkdir 'ca\u200cf\u00c9'; echo x > 'ca\u200cf\u00c9/x'"
    )
    assert len(held(said)) == 4 and said["promoted"] is None


@pytest.mark.spec("F4")
def test_no_yes_lifts_a_denial_and_undo_is_free(house: House):
    first = house.applied("echo x > migrations/2; echo y > y")
    house.set(RULES)
    assert house("undo", str(first["promoted"]))[0] == 0
    assert not (house.workspace / "migrations/2").exists()
    assert house("redo")[0] == 0
    kept = house.applied("echo z > migrations/2; echo z > z")["kept"]
    code, _, err = house("promote", str(kept), "--allow-protected")
    assert code == 1 and "denied: Edit(migrations/**)" in err
    patch = "--- a/migrations/2\n+++ b/migrations/2\n@@ -1 +1 @@\n-x\n+patched\n"
    for words in (("patch", "-"), ("patch", "-", "--dry-run"), ("patch", "-", "--yes", "--allow-protected")):
        code, _, err = house(*words, stdin=patch)
        assert code == 1 and "'migrations/2' is denied by the rule Edit(migrations/**)" in err
    code, _, err = house("patch", "--path", "migrations/2", "--old", "x", "--new", "y", "--allow-protected", "--yes")
    assert code == 1 and "denied by the rule" in err
    assert (house.workspace / "migrations/2").read_text() == "x\n"


@pytest.mark.spec("F4")
def test_a_rule_that_asks_needs_a_yes_of_its_own(house: House):
    house.set(RULES)
    said = house.applied("echo b > schema/a.sql; echo b > a.txt")
    assert held(said) == {"schema/a.sql": ("asked about", "Edit(schema/**)")}
    assert (house.workspace / "schema/a.sql").read_text() == "a\n"
    assert house("promote", str(said["kept"]))[0] == 1
    assert house("promote", str(said["kept"]), "--allow-protected")[0] == 0
    assert (house.workspace / "schema/a.sql").read_text() == "b\n"
    patch = "--- a/schema/a.sql\n+++ b/schema/a.sql\n@@ -1 +1 @@\n-b\n+c\n"
    assert "Edit(schema/**) asks about 'schema/a.sql'" in house("patch", "-", stdin=patch)[2]
    assert house("patch", "-", "--yes", stdin=patch)[0] == 0


@pytest.mark.spec("F4")
def test_rules_of_a_repository_that_is_not_trusted_deny_as_well(house: House):
    house.lay({".pawl/settings.toml": RULES.encode()})
    assert held(house.applied("echo x > migrations/2")) == {"migrations/2": DENIED}


@pytest.mark.spec("F4")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ln -s x/../out y", "ln -s . x"),
        ("mkdir -p d/e; ln -s ../../x/../out d/e/y", "ln -s . x"),
        ("mkdir x; echo k > x/k; ln -s x/../out y", "rm -r x; ln -s . x"),
        ("mkdir -p a/b/c; ln -s a/b/c x; ln -s x/../../../out y", "rm x; mkdir x; echo k > x/k"),
        ("mkdir -p a/b/c; ln -s a/b/c x; ln -s x/../../../out y", "rm x; ln -s a x"),
        ("ln -s x/../out y; ln -s y z", "ln -s w x; ln -s . w"),
        ("mkdir sub; ln -s $PWD/x/../out y", "ln -s . x"),
        ("mkdir -p x/in; echo k > x/in/k; ln -s x/in/../../out y", "mv x x2; ln -s x2/in x"),
    ],
)
def test_no_promotion_makes_a_link_lead_out_that_did_not(house: House, first: str, second: str):
    house.applied(first)
    assert outside(house) == []
    said = house.applied(second, "--allow-protected")
    assert outside(house) == []
    for entry in (said["kept"],) if said["kept"] else ():
        house("promote", str(entry), "--allow-protected")
        assert outside(house) == []


@pytest.mark.spec("F4")
def test_a_link_of_the_users_is_not_turned_outwards_either(house: House):
    (house.workspace / "y").symlink_to("x/../out")
    said = house.applied("ln -s . x; echo n > n")
    assert held(said) == {"x": ("link out of the workspace", "")}
    assert outside(house) == [] and (house.workspace / "n").exists()
    patch = "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+.\n"
    patch += "\\ No newline at end of file\n"
    code, _, err = house("patch", "-", stdin=patch)
    assert code == 1 and "'x' cannot be written: 'y' would lead out of the workspace" in err


@pytest.mark.spec("F4")
def test_steps_back_turn_no_link_outwards_and_bring_back_what_the_user_had(house: House):
    (house.workspace / "x").symlink_to(".")
    (house.workspace / "shared").symlink_to("../elsewhere")
    gone = house.applied("rm x shared; mkdir x; echo k > x/k")["promoted"]
    link = house.applied("ln -s x/../out y")["promoted"]
    code, _, err = house("undo", str(gone))
    assert code == 1 and "'y' would lead out of the workspace" in err
    assert house("undo", str(link))[0] == 0
    assert house("undo", str(gone))[0] == 0
    assert outside(house) == ["shared"]
    code, _, err = house("undo", str(house.json("history")["entries"][1]["id"]))
    assert code == 1 and "'y' cannot be written" in err
    assert outside(house) == ["shared"]


@pytest.mark.spec("F4")
def test_planted_staging_names_neither_stop_a_promotion_nor_are_touched(house: House):
    state = house.folder / ".local/state/pawl/locks"
    guess = hashlib.sha256(os.fsencode(state)).hexdigest()[:8]
    (house.folder / "elsewhere").mkdir()
    lay(house.folder, {"elsewhere/0": b"kept\n"})
    house.lay(
        {f".pawl-tmp-{guess}-1/deep/x": b"1", f".pawl-tmp-{guess}-2": b"2", f".pawl-tmp-{guess}-3": "../elsewhere"}
    )
    before = sorted(os.listdir(house.workspace))
    for number in range(1, 5):
        assert house.applied(f"echo {number} > a.txt")["promoted"] is not None
    assert sorted(os.listdir(house.workspace)) == before
    assert (house.workspace / f".pawl-tmp-{guess}-1/deep/x").read_bytes() == b"1"
    assert (house.folder / "elsewhere/0").read_bytes() == b"kept\n"


@pytest.mark.spec("F4")
@pytest.mark.parametrize(
    "name",
    [
        *(".yarnrc.yml", ".pnpmfile.cjs", ".gdbinit", ".PDBRC", "opencode.json", ".crush.json", "ci/Jenkinsfile"),
        *(".vs\u200ccode/tasks.json", ".circleci/config.yml", "sitecustomize.py", ".hg/hgrc", ".envrc "),
    ],
)
def test_what_other_programs_would_obey_is_held_back(house: House, name: str):
    said = house.applied(f"mkdir -p \"$(dirname '{name}')\"; echo x > '{name}'; echo y > y")
    assert held(said)[name] == ("protected", "")
    assert not os.path.lexists(house.workspace / name) and (house.workspace / "y").exists()


@pytest.mark.spec("F4")
def test_what_the_users_git_is_told_to_run_or_read_is_protected(house: House):
    """Of the workspace: hooks in a folder that the configuration names, filters, what it includes."""
    lay(
        house.workspace,
        {"tools/clean.py": b"1", "setup/git.inc": b"1", "plain": b"1", "scripts/hooks/pre-commit": b"1"},
    )
    git(house.workspace, "init", "-q")
    with open(house.workspace / ".git/config", "a") as config:
        config.write("[core]\nhooksPath = scripts/hooks\n[include]\npath = ../setup/git.inc\n")
        config.write("[filter \"x\"]\nclean = python3 'tools/clean.py' %f\n")
    house.user.own(house.workspace)
    script = "echo 2 | tee scripts/hooks/pre-commit scripts/hooks/post-checkout tools/clean.py setup/git.inc plain"
    named = {"scripts/hooks/pre-commit", "scripts/hooks/post-checkout", "tools/clean.py", "setup/git.inc"}
    assert held(house.applied(script)) == dict.fromkeys(named, ("protected", ""))
    assert (house.workspace / "plain").read_text() == "2\n"


@pytest.mark.spec("F4")
@pytest.mark.parametrize("way", ["the folder", "a link to the folder", "links to the files"])
def test_the_users_own_settings_are_protected_where_they_lie_in_the_workspace(house: House, way: str):
    """A repository of dot files: whoever writes them may say `host = true`."""
    house.lay({"dots/pawl/config.toml": b"", "dots/pawl/hooks.json": b"{}", "dots/other": b"1"})
    place, real = house.folder / ".config/pawl", house.workspace / "dots/pawl"
    place.parent.mkdir(exist_ok=True)
    if way == "links to the files":
        place.mkdir()
        for name in ("config.toml", "hooks.json"):
            (place / name).symlink_to(real / name)
    else:
        (place if way == "a link to the folder" else place.parent / "unused").symlink_to(real)
    variables = {"PAWL_CONFIG": f"{real}/config.toml"} if way == "the folder" else {}
    house.user.own(house.folder / ".config")
    words = ("run", "-C", str(house.workspace), "--json", "--apply", "--", "sh", "-c")
    line = "echo '[[hooks.Stop]]' | tee dots/pawl/config.toml dots/pawl/hooks.json dots/other"
    process = house.user.start_python(CALL, *words, line, home=house.folder, env=variables, stdout=-1, text=True)
    assert set(held(json.loads(process.communicate()[0]))) == {"dots/pawl/config.toml", "dots/pawl/hooks.json"}


@pytest.mark.spec("F4")
@pytest.mark.parametrize("name", [".GIT/config", "git~1/config", ".g\u200cit/config", "sub/.git /config", ".git./x"])
def test_no_spelling_of_gits_own_folder_is_written(house: House, name: str):
    said = house.applied(f"mkdir -p \"$(dirname '{name}')\"; echo x > '{name}'", "--allow-protected")
    assert said["promoted"] is None or not os.path.lexists(house.workspace / name)
    assert any(reason in ("git's own", "out of reach") for reason, _ in held(said).values())


@pytest.mark.spec("F4")
def test_a_bare_repository_is_protected_however_it_comes_together(house: House):
    bare = "mkdir -p docs/sub/objects docs/sub/refs; echo 'ref: refs/heads/main' > docs/sub/HEAD"
    said = house.applied(f"{bare}; printf '[core]\\n\\tfsmonitor = touch PWN\\n' > docs/sub/config; echo y > docs/y")
    assert {"docs/sub/HEAD", "docs/sub/config", "docs/sub/objects"} <= held(said).keys()
    assert (house.workspace / "docs/y").exists() and not (house.workspace / "docs/sub/HEAD").exists()
    house.applied("mkdir -p part/objects part/refs; echo k > part/objects/k; echo k > part/refs/k")
    assert (house.workspace / "part/refs/k").exists()
    assert held(house.applied("echo 'ref: refs/heads/main' > part/HEAD")) == {"part/HEAD": ("protected", "")}
    assert "work/commondir" in held(house.applied("mkdir work; echo x > work/HEAD; echo ../x > work/commondir"))


@pytest.mark.spec("F4")
def test_no_bit_that_gives_rights_is_promoted(house: House):
    script = (
        "cp /bin/true tool; chmod 4755 tool; cp /bin/true grp; chmod 2755 grp; mkdir -m 2775 team; mkdir -m 1777 all"
    )
    said = house.applied(f"{script}; chmod 1644 a.txt; chmod 2755 src; echo y > y", "--allow-protected")
    bits = ("setuid, setgid or sticky", "")
    assert held(said) == dict.fromkeys(("tool", "grp", "team", "all", "a.txt", "src"), bits)
    assert house("promote", str(said["kept"]), "--allow-protected")[0] == 1
    assert sorted(os.listdir(house.workspace)) == ["a.txt", "migrations", "schema", "src", "y"]
    assert all((house.workspace / name).stat().st_mode & 0o7000 == 0 for name in ("a.txt", "src"))


@pytest.mark.spec("F4")
def test_new_folders_of_a_shared_folder_keep_its_group(house: House):
    (house.workspace / "src").chmod(0o2775)
    said = house.applied("mkdir -p src/new/deep; echo x > src/new/deep/x")
    assert held(said) == {}
    assert (house.workspace / "src/new/deep/x").exists()


PAYLOAD = "git init -q --bare docs/sub; printf '[core]\\n\\tfsmonitor = touch PWN\\n' >> docs/sub/config"


@pytest.mark.spec("F4")
@pytest.mark.parametrize("asked", ["docs/**", "docs/sub/HEAD", "docs/sub/objects/**", "docs/sub/config"])
def test_a_rule_that_asks_does_not_take_a_bare_repository_past_protection(house: House, asked: str):
    house.set(f'[permissions]\nask = ["Edit({asked})"]\n')
    said = house.applied(f"{PAYLOAD}; echo y > docs/y")
    found = held(said)
    assert {path: found[path] for path in ("docs/sub/HEAD", "docs/sub/config")} == dict.fromkeys(
        ("docs/sub/HEAD", "docs/sub/config"), ("protected", "")
    )
    assert not (house.workspace / "docs/sub").exists()


@pytest.mark.spec("F4")
def test_the_parts_of_a_bare_repository_are_protected_where_the_user_changed_them_meanwhile(house: House):
    house.lay({"docs/sub/HEAD": b"mine\n", "docs/sub/objects/k": b"", "docs/sub/refs/k": b""})
    (house.workspace / "docs/sub/objects").rename(house.workspace / "docs/sub/other")
    said = house.applied("echo theirs > docs/sub/HEAD; mkdir docs/sub/objects; echo k > docs/sub/objects/k")
    assert held(said)["docs/sub/HEAD"] == ("protected", "")


@pytest.mark.spec("F4")
def test_a_folder_that_only_holds_what_is_held_back_is_not_promoted(house: House):
    script = "mkdir -p .github/workflows empty a/b; echo x > .github/workflows/x.yml; echo k > a/.env"
    said = house.applied(script)
    assert not (house.workspace / ".github").exists()
    assert (house.workspace / "empty").is_dir() and (house.workspace / "a/b").is_dir()
    assert house("promote", str(said["kept"]), "--allow-protected")[0] == 0
    assert (house.workspace / ".github/workflows/x.yml").read_text() == "x\n"


@pytest.mark.spec("F4")
def test_links_that_fault_one_after_the_other_are_all_held_back_at_the_second_fault(house: House):
    deep = "../../../../../g/h/i/j/k"
    house.lay({"d/e/f": b"", "g/h/i/j/k/f": b"", "n/f": b""})
    for name, target in (("n/y", "../g/h/i/j/k"), ("x", "d/e"), ("s", "x/../../z")):
        (house.workspace / name).symlink_to(target)
    # Without `x -> n`, which turns `s` outwards, the first of the chain leads out; without that the next one does.
    chain = (
        f"ln -sfn n x; ln -s a.txt fine; ln -s x/y/{deep} p0; for i in $(seq 60); do ln -s p$((i-1))/{deep} p$i; done"
    )
    said = held(house.applied(chain))
    every = ("x", "fine", *(f"p{number}" for number in range(61)))
    assert said == dict.fromkeys(every, ("link out of the workspace", ""))
    assert outside(house) == []
