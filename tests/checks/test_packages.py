"""Packages that the workspace lacks: installed on the bench by the lock file, kept, and brought onto the next one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from opened import Site

from pawl.checks.packages import PackagePolicy, Provided, provide
from pawl.core.errors import PathRefused
from pawl.core.execution import Execution
from pawl.workspace.bench import Bench
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project

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
INSTALL = PackagePolicy(install=True)


@pytest.fixture
def greeter(site: Site) -> Iterator[Project]:
    """A project whose only package is a folder of its own, so that installing it needs no network."""
    for name, data in (("package.json", PACKAGE), ("package-lock.json", LOCK)):
        site.write(name, json.dumps(data).encode())
    site.write("greet/package.json", json.dumps({"name": "greet", "version": "1.0.0"}).encode())
    site.write("greet/index.js", b"module.exports = 'hello';\n")
    with site.open() as shop:
        yield shop


def says(bench: Bench) -> str:
    return bench.run(Execution(argv=("node", "-p", "require('greet')"))).stdout.text.strip()


def provided(shop: Project, wanted: PackagePolicy | None = None) -> tuple[tuple[Provided, ...], str]:
    with open_bench(shop) as bench:
        return provide(shop, bench, wanted), says(bench)


def test_nothing_is_installed_unless_the_user_allows_it(greeter):
    [(found,), said] = provided(greeter)
    assert "package-lock.json are not installed; --install does it" in found.note
    assert (found.key, said) == ("", "")


def test_what_was_installed_once_is_brought_onto_later_benches_and_never_into_the_workspace(greeter, site):
    tables = replace(site.config.tables, verify={"install": True})
    with Project.open(replace(site.config, tables=tables), site.workspace) as allowed:
        [(first,), said] = provided(allowed)
    assert (first.note, said) == ("the packages of package-lock.json were installed", "hello")
    [(second,), said] = provided(greeter)
    assert (second.key, said) == (first.key, "hello")
    assert not (Path(greeter.workspace) / "node_modules").exists()
    careful = PackagePolicy(only_ignored=True)
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


SCRIPTED = {**PACKAGE, "scripts": {"postinstall": "node setup/install.js"}}
SETUP = "const fs = require('fs');\nfs.mkdirSync('node_modules/made', {recursive: true});\n"
MADE = f"{SETUP}fs.writeFileSync('node_modules/made/index.js', 'module.exports = \\'made\\'');\n"


@pytest.mark.attack("A54")
def test_what_a_script_installed_in_one_workspace_never_reaches_another(greeter, site, memory):
    site.write("package.json", json.dumps(SCRIPTED).encode())
    site.write("setup/install.js", MADE.encode())
    [(first,), _] = provided(greeter, INSTALL)
    assert first.key
    shutil.copytree(site.workspace, memory / "other")
    with Project.open(site.config, memory / "other") as other:
        [(found,), said] = provided(other)
    assert (found.key, said) == ("", "")
    assert provided(greeter)[0][0].key == first.key


def test_everything_that_decides_about_an_installation_makes_it_another(greeter, site):
    site.write("package.json", json.dumps(SCRIPTED).encode())
    site.write("setup/install.js", MADE.encode())
    site.write("setup/helper.js", b"")
    kept = provided(greeter, INSTALL)[0][0].key
    for name in ("greet/index.js", "greet/new.js", "setup/helper.js", "patches/greet+1.0.0.patch", ".yarnrc.yml",
                 ".pnpmfile.cjs", "pnpm-workspace.yaml", "web/package.json", ".yarn/plugins/own.cjs"):  # fmt: skip
        path = site.workspace / name
        before = path.read_bytes() if path.exists() else None
        site.write(name, b"// other\n")
        assert provided(greeter)[0][0].key == "", name
        path.unlink() if before is None else path.write_bytes(before)
    site.write("src/greeter.py", b"other\n")
    assert kept and provided(greeter)[0][0].key == kept


@pytest.mark.attack("A54")
def test_a_kept_installation_that_was_changed_is_not_used_and_no_bench_can_change_it(greeter, site):
    kept = provided(greeter, INSTALL)[0][0].key
    with open_bench(greeter) as bench:
        provide(greeter, bench)
        edit = "echo 1 > node_modules/evil.js; rm node_modules/greet; echo > node_modules/.package-lock.json"
        assert bench.run(Execution(argv=("/bin/sh", "-c", edit))).ok
    [(found,), said] = provided(greeter)
    assert (found.key, said) == (kept, "hello")
    (file,) = (site.config.state / "packages").rglob(".package-lock.json")
    stamp, data = file.stat(), file.read_bytes()
    file.write_bytes(data.replace(b"1.0.0", b"6.6.6"))
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    [(found,), said] = provided(greeter)
    assert (found.key, said) == ("", "")
    assert "are not installed" in found.note
