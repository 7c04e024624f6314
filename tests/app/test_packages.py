"""Packages that the workspace lacks: installed on the bench by the lock file, kept, and brought onto the next one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from app.conftest import Site

from pawl.app.running import open_bench
from pawl.app.verifying.packages import Provided, Wanted, provide
from pawl.app.workshop import Workshop
from pawl.core.errors import PathRefused
from pawl.core.execution import Execution
from pawl.workspace.bench import Bench

pytestmark = [
    pytest.mark.spec("A12"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]
PACKAGE = {"name": "shop", "version": "1.0.0", "dependencies": {"greet": "file:greet"}}
LOCK = {
    "name": "shop",
    "version": "1.0.0",
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "shop", "version": "1.0.0", "dependencies": {"greet": "file:greet"}},
        "greet": {"version": "1.0.0"},
        "node_modules/greet": {"resolved": "greet", "link": True},
    },
}
INSTALL = Wanted(install=True)


@pytest.fixture
def greeter(site: Site) -> Iterator[Workshop]:
    """A project whose only package is a folder of its own, so that installing it needs no network."""
    for name, data in (("package.json", PACKAGE), ("package-lock.json", LOCK)):
        site.write(name, json.dumps(data).encode())
    site.write("greet/package.json", json.dumps({"name": "greet", "version": "1.0.0"}).encode())
    site.write("greet/index.js", b"module.exports = 'hello';\n")
    with site.open() as shop:
        yield shop


def says(bench: Bench) -> str:
    return bench.run(Execution(argv=("node", "-p", "require('greet')"))).stdout.text.strip()


def provided(shop: Workshop, wanted: Wanted | None = None) -> tuple[tuple[Provided, ...], str]:
    with open_bench(shop) as bench:
        return provide(shop, bench, wanted), says(bench)


def test_nothing_is_installed_unless_the_user_allows_it(greeter):
    [(found,), said] = provided(greeter)
    assert "package-lock.json are not installed; --install does it" in found.note
    assert (found.key, said) == ("", "")


def test_what_was_installed_once_is_brought_onto_later_benches_and_never_into_the_workspace(greeter, site):
    tables = replace(site.config.tables, verify={"install": True})
    with Workshop.open(replace(site.config, tables=tables), site.workspace) as allowed:
        [(first,), said] = provided(allowed)
    assert (first.note, said) == ("the packages of package-lock.json were installed", "hello")
    [(second,), said] = provided(greeter)
    assert (second.key, said) == (first.key, "hello")
    assert not (Path(greeter.workspace) / "node_modules").exists()
    careful = Wanted(only_ignored=True)
    assert provided(greeter, careful) == ((), "")
    site.write(".gitignore", b"node_modules\n")
    assert provided(greeter, careful)[1] == "hello"
    site.write("package-lock.json", json.dumps({**LOCK, "version": "1.0.1"}).encode())
    [(found,), said] = provided(greeter)
    assert (found.key, said) == ("", "")


def test_a_lock_file_that_does_not_fit_is_said_to_fail_and_nothing_is_kept(greeter, site):
    site.write("package.json", json.dumps({**PACKAGE, "dependencies": {"other": "file:other"}}).encode())
    [(found,), _] = provided(greeter, INSTALL)
    assert found.note.startswith("npm ci failed: ")
    assert "in sync" in found.note
    assert not (site.config.state / "packages").exists()


@pytest.mark.attack("A12")
def test_a_package_that_makes_its_folder_a_link_hands_out_nothing_of_this_machine(greeter, site, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    trick = f"rm -rf node_modules && ln -s {tmp_path / 'private'} node_modules"
    site.write("package.json", json.dumps({**PACKAGE, "scripts": {"postinstall": trick}}).encode())
    with open_bench(greeter) as bench:
        provide(greeter, bench, INSTALL)
        with pytest.raises(PathRefused):
            bench.hand_out("node_modules", tmp_path / "taken")
    assert not list((site.config.state / "packages").rglob("key"))
    assert not (tmp_path / "taken").exists()
