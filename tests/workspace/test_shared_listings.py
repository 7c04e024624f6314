"""What is known of a project's folders and files is not looked for again, and what has changed is always seen."""

from __future__ import annotations

import os

import pytest
from opened import Site

from pawl.code.librarian import source_files
from pawl.core.change import blob_digest
from pawl.core.errors import NotFound, SecretRefused
from pawl.core.execution import Execution, Limits
from pawl.settings.files import Tree
from pawl.workspace import masks
from pawl.workspace.bench import Bench
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project
from pawl.workspace.surface import tick

pytestmark = [pytest.mark.spec("F4"), pytest.mark.attack("A16")]


def shown(shop: Project, path: str) -> str:
    with open_bench(shop) as bench:
        done = bench.run(Execution(argv=("/bin/cat", path), limits=Limits(seconds=20)))
        return done.stdout.text


def test_a_fresh_bench_lists_no_folder_again_that_has_not_changed(site: Site, monkeypatch: pytest.MonkeyPatch):
    for at in range(20):
        site.write(f"d{at}/notes.txt", b"n")
    listed: list[str] = []
    real = masks.HiddenSearch._list

    def counting(search: masks.HiddenSearch, fd: int, folder: str) -> object:
        listed.append(folder)
        return real(search, fd, folder)

    monkeypatch.setattr(masks.HiddenSearch, "_list", counting)
    monkeypatch.setattr(masks, "_SETTLED_NS", -(1 << 62))
    with site.open() as shop:
        assert shown(shop, "d1/notes.txt") == "n" and len(listed) >= 21
        listed.clear()
        assert shown(shop, "d1/notes.txt") == "n" and listed == []
        site.write("d1/.env", b"KEY=canary")
        assert shown(shop, "d1/.env") == "" and listed == ["d1"]


def test_what_comes_between_two_benches_is_hidden(site: Site):
    site.write("a/notes.txt", b"KEY=canary")
    with site.open() as shop:
        assert shown(shop, "a/notes.txt") == "KEY=canary"
        (site.workspace / "a/.env").hardlink_to(site.workspace / "a/notes.txt")
        assert (shown(shop, "a/.env"), shown(shop, "a/notes.txt")) == ("", "")
        (site.workspace / "b").mkdir()
        (site.workspace / "a/.env").rename(site.workspace / "b/.env")
        assert (shown(shop, "b/.env"), shown(shop, "a/notes.txt")) == ("", "")
        site.write("c/.env", b"KEY=canary")
        (site.workspace / "a").rename(site.workspace / "old")
        (site.workspace / "c").rename(site.workspace / "a")
        assert shown(shop, "a/.env") == ""


def test_a_workspace_that_is_replaced_as_a_whole_is_looked_through_anew(site: Site):
    site.write("a/notes.txt", b"n")
    with site.open() as shop:
        assert shown(shop, "a/notes.txt") == "n"
        site.workspace.rename(site.workspace.with_name("moved"))
        site.write("a/.env", b"KEY=canary")
        assert shown(shop, "a/.env") == ""


OWN = frozenset({".env", "README.md", "run.sh", "src/greeter.py"})
"""Of every site."""


def later(site: Site) -> None:
    """Whatever is written from here on has a later time than all that stands there."""
    every = [
        os.path.join(folder, name) for folder, folders, names in os.walk(site.workspace) for name in (*folders, *names)
    ]
    newest = max(os.lstat(path).st_ctime_ns for path in (str(site.workspace), *every))
    tick(site.workspace.parent, newest, seconds=5)


def walked(bench: Bench, under: str = "") -> list[str]:
    return [path for path in bench.files.walk(under) if path not in OWN]


def seen(shop: Project, bench: Bench) -> tuple[list[str], list[str]]:
    """What a walk of the bench shows, and what the index would be made of."""
    return walked(bench), [one.path for one in source_files(shop).stamps() if one.path not in OWN]


@pytest.mark.parametrize("settled", [True, False])
def test_walks_show_every_folder_as_it_stands(site: Site, monkeypatch: pytest.MonkeyPatch, *, settled: bool):
    if settled:
        monkeypatch.setattr(masks, "_SETTLED_NS", -(1 << 62))
    site.write(".gitignore", b"*.log\n")
    site.write("a/one.py", b"1")
    site.write("a/two.log", b"2")
    with site.open() as shop, open_bench(shop) as bench:
        first = [".gitignore", "a/one.py"]
        assert seen(shop, bench) == (first, first)
        later(site)
        (site.workspace / ".gitignore").write_bytes(b"one.*\n")  # In place: no folder has changed.
        assert seen(shop, bench) == ([".gitignore", "a/two.log"],) * 2
        site.write("a/three.py", b"3")
        assert seen(shop, bench) == ([".gitignore", "a/three.py", "a/two.log"],) * 2
        later(site)
        bench.files.write("a/own.py", b"4")
        bench.files.delete("a/three.py")
        assert walked(bench) == [".gitignore", "a/own.py", "a/two.log"]
        assert walked(bench, "a") == ["a/own.py", "a/two.log"]
        later(site)
        site.write("a/.gitignore", b"two.log\n")
        site.write("b/pyvenv.cfg", b"")
        site.write("b/four.py", b"4")
        assert walked(bench) == [".gitignore", "a/.gitignore", "a/own.py"]
        assert seen(shop, bench)[1] == [".gitignore", "a/.gitignore", "a/three.py"]
        later(site)
        (site.workspace / "b/pyvenv.cfg").unlink()
        assert seen(shop, bench)[1] == [".gitignore", "a/.gitignore", "a/three.py", "b/four.py"]
        later(site)
        site.write(".pawlignore", b"b\n")
        assert seen(shop, bench)[1] == [".gitignore", ".pawlignore", "a/.gitignore", "a/three.py"]
        assert "b/four.py" in seen(shop, bench)[0]
        later(site)
        (site.workspace / "b").rename(site.workspace / ".git")
        (site.workspace / "a").rename(site.workspace.with_name("away"))
        (site.workspace / "a").symlink_to(site.workspace.with_name("away"))
        assert seen(shop, bench)[1] == [".gitignore", ".pawlignore"]


def test_a_file_that_becomes_a_secret_by_a_link_is_no_source_any_more(site: Site):
    site.write("a/notes.txt", b"KEY=canary")
    with site.open() as shop:
        assert "a/notes.txt" in [one.path for one in source_files(shop).stamps()]
        (site.workspace / "a/.env").symlink_to("notes.txt")
        assert (
            isinstance(shop.guardrails.others, masks.Names) and "a/notes.txt" in shop.guardrails.others.masks().secrets
        )
        assert "a/notes.txt" not in [one.path for one in source_files(shop).stamps()]


def test_a_folder_that_has_not_changed_is_listed_once(site: Site, monkeypatch: pytest.MonkeyPatch):
    for at in range(20):
        site.write(f"d{at}/notes.txt", b"n")
    monkeypatch.setattr(masks, "_SETTLED_NS", -(1 << 62))
    listed: list[str] = []
    real = Tree.kinds
    monkeypatch.setattr(Tree, "kinds", lambda tree, path="": listed.append(path) or real(tree, path))
    with site.open() as shop, open_bench(shop) as bench:
        every = seen(shop, bench)
        listed.clear()
        assert seen(shop, bench) == every and not any(listed)
        later(site)
        site.write("d1/more.txt", b"n")
        assert "d1/more.txt" in seen(shop, bench)[0] and [one for one in listed if one] == ["d1"]


@pytest.mark.parametrize("settled", [True, False])
def test_the_digest_of_a_file_is_that_of_what_it_holds(site: Site, monkeypatch: pytest.MonkeyPatch, *, settled: bool):
    if settled:
        monkeypatch.setattr(masks, "_SETTLED_NS", -(1 << 62))
    site.write("a/one.py", b"1")
    path = site.workspace / "a/one.py"
    with site.open() as shop, open_bench(shop) as bench:
        assert bench.files.digest("a/one.py") == blob_digest(b"1")
        later(site)
        at = path.stat().st_mtime_ns
        path.write_bytes(b"2")
        os.utime(path, ns=(at, at))
        assert bench.files.digest("a/one.py") == blob_digest(b"2")
        later(site)
        bench.files.write("a/one.py", b"3")
        assert bench.files.digest("a/one.py") == blob_digest(b"3")
        with pytest.raises(NotFound):
            bench.files.digest("a/none.py")
        site.write("a/.env", b"KEY=canary")
        with pytest.raises(SecretRefused):
            bench.files.digest("a/.env")
