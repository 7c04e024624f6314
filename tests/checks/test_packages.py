"""Packages that the workspace lacks: installed on the bench by the lock file, kept, and brought onto the next one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from folder import FolderFiles
from opened import Site

from pawl.checks.packages import PackagePolicy, Provided, provide
from pawl.checks.python_packages import python_installation
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
    kept = provided(greeter, INSTALL)[0][0].key
    for name in ("greet/index.js", "greet/new.js", "patches/greet+1.0.0.patch", ".yarnrc.yml", ".pnpmfile.cjs",
                 "pnpm-workspace.yaml", "web/package.json", ".yarn/plugins/own.cjs"):  # fmt: skip
        path = site.workspace / name
        before = path.read_bytes() if path.exists() else None
        site.write(name, b"// other\n")
        assert provided(greeter)[0][0].key == "", name
        path.unlink() if before is None else path.write_bytes(before)
    site.write("src/greeter.py", b"other\n")
    assert kept and provided(greeter)[0][0].key == kept


REACHED = {
    "by a folder's name": ("node setup", "setup/index.js"),
    "by another script": ("npm run deps", "tools/deps/make.js"),
    "by make": ("make deps", "tools/deps.mk"),
    "by code in the line": ("node -e \"require('./tools/' + 'x.js')\"", "tools/x.js"),
    "by a list of files": ("for one in hooks.d/*; do sh $one; done", "hooks.d/1"),
    "by a package of its own": ("node setup/install.js", "greet/lib/deep.js"),
}


@pytest.mark.hostile
@pytest.mark.attack("A54")
@pytest.mark.parametrize("variant", REACHED)
def test_what_a_script_reaches_by_any_way_makes_it_another_installation(greeter, site, variant):
    line, reached = REACHED[variant]
    scripts = {"postinstall": f"{line} || true", "deps": "node tools/deps/make.js"}
    site.write("package.json", json.dumps({**PACKAGE, "scripts": scripts}).encode())
    site.write(reached, b"// evil\n")
    evil = provided(greeter, INSTALL)[0][0].key
    site.write(reached, b"// good\n")
    assert evil and provided(greeter)[0][0].key == ""


@pytest.mark.hostile
@pytest.mark.attack("A54")
def test_a_change_that_is_not_promoted_has_no_part_in_what_is_kept_but_by_what_says_what_is_installed(greeter, site):
    site.write("tools/word.js", MADE.replace("made\\'", "good\\'").encode())
    scripts = {"postinstall": "npm run deps", "deps": "node tools/word"}
    site.write("package.json", json.dumps({**PACKAGE, "scripts": scripts}).encode())
    with open_bench(greeter) as bench:
        bench.files.write("tools/word.js", MADE.replace("made\\'", "evil\\'").encode())
        (first,) = provide(greeter, bench, INSTALL)
        made = bench.run(Execution(argv=("node", "-p", "require('made')"))).stdout.text
    assert (made, provided(greeter)[0][0].key) == ("good\n", first.key)


PLAIN = '[build-system]\nbuild-backend = "hatchling.build"\n[project]\nname = "shop"\ndependencies = ["greet"]\n'


@pytest.mark.attack("A54")
@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({"pyproject.toml": PLAIN}, False),
        ({"requirements.txt": "greet\n-r requirements/base.txt\n"}, False),
        ({"requirements.txt": "greet\n", "setup.py": ""}, False),
        ({"pyproject.toml": PLAIN, "setup.py": ""}, True),
        ({"pyproject.toml": PLAIN.replace("hatchling.build", "mesonpy")}, True),
        ({"pyproject.toml": PLAIN.replace("hatchling", "own")}, True),
        ({"pyproject.toml": f'{PLAIN}[tool.hatch.build.hooks.custom]\npath = "tools/make.py"\n'}, True),
        ({"pyproject.toml": f'{PLAIN}[tool.setuptools.dynamic]\nversion = {{attr = "shop.v"}}\n'}, True),
        ({"pyproject.toml": f'{PLAIN}[tool.uv.sources]\ngreet = {{ path = "lib" }}\n', "uv.lock": ""}, True),
        ({"requirements.txt": "./lib\n"}, True),
        ({"requirements.txt": "lib/greet\n"}, True),
        ({"requirements.txt": "-e lib\n"}, True),
        ({"requirements.txt": "greet @ file:lib\n"}, True),
        ({"requirements.txt": "--find-links vendor\ngreet\n"}, True),
        ({"requirements.txt": "-r lib/all.txt\n"}, True),
    ],
)
def test_an_installation_in_which_code_or_files_of_the_workspace_have_a_part_is_known(tmp_path, files, runs):
    folder = FolderFiles(tmp_path)
    for path, text in {"test_a.py": "import pytest\n", **files}.items():
        folder.write(path, text.encode())
    found = python_installation(folder)
    assert found and found.runs_code is runs


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
