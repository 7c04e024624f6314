"""Fresh benches of an opened project start with what is known of its folders, and still show no secret."""

from __future__ import annotations

import pytest
from opened import Site

from pawl.core.execution import Execution, Limits
from pawl.workspace import masks
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project

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
