"""The environment of a project that nobody has activated serves every command on a bench."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from opened import Site

from pawl.settings.config import load
from pawl.workspace import environments
from pawl.workspace.benches import CommandRequest, run_on_bench
from pawl.workspace.environments import found_environment
from pawl.workspace.project import Project


def interpreter(folder: Path, name: str = "python") -> Path:
    """Something that stands for an installed interpreter and says where it lies."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    for one in (name, "python3" if name == "python" else name):
        (folder / "bin" / one).write_text(f"#!/bin/sh\necho {folder}\n")
        (folder / "bin" / one).chmod(0o755)
    return folder


def hashed(path: str, algorithm: str = "sha256") -> str:
    return base64.urlsafe_b64encode(hashlib.new(algorithm, path.encode()).digest()).decode()[:8]


PLACES: dict[str, tuple[str, Callable[[Path], str], dict[str, bytes]]] = {
    "own": ("python", lambda w: f"{w}/venv", {}),
    "poetry": ("python", lambda w: f"~/.cache/pypoetry/virtualenvs/shop-{hashed(str(w))}-py3.11", {}),
    "pdm": ("python", lambda w: f"~/.local/share/pdm/venvs/{w.name}-{hashed(str(w), 'md5')}-3.11", {}),
    "hatch": ("python", lambda w: f"~/.local/share/hatch/env/virtual/shop/{hashed(str(w))}/hatch-test.py3.11", {}),
    "pipenv": ("python", lambda w: f"~/.local/share/virtualenvs/{w.name}-{hashed(f'{w}/Pipfile')}", {}),
    "virtualenvwrapper": ("python", lambda w: "~/.virtualenvs/elsewhere", {}),
    "by name": ("python", lambda w: f"~/.virtualenvs/{w.name}", {}),
    "conda": ("python", lambda w: "~/miniconda3/envs/shop", {"environment.yml": b"name: shop\n"}),
    "pyenv-virtualenv": ("python", lambda w: "~/.pyenv/versions/shop", {".python-version": b"shop\n"}),
    "nvm": ("node", lambda w: "~/.nvm/versions/node/v20.11.1", {".nvmrc": b"v20\n"}),
    "fnm": (
        "node",
        lambda w: "~/.local/share/fnm/node-versions/v20.11.1/installation",
        {".node-version": b"20.11.1\n"},
    ),
    "volta": (
        "node",
        lambda w: "~/.volta/tools/image/node/20.11.1",
        {"package.json": b'{"volta": {"node": "20.11.1"}}'},
    ),
    "mise": ("node", lambda w: "~/.local/share/mise/installs/node/20.11.1", {"mise.toml": b'[tools]\nnode = "20"\n'}),
    "asdf": ("node", lambda w: "~/.asdf/installs/nodejs/20.11.1", {".tool-versions": b"nodejs 20.11.1\n"}),
}


@pytest.mark.parametrize("way", PLACES)
def test_an_environment_that_is_not_activated_is_found_and_runs_on_a_bench(site: Site, way):
    language, place, files = PLACES[way]
    folder = interpreter(Path(place(site.workspace).replace("~", os.path.expanduser("~"))), language)
    if way == "virtualenvwrapper":
        (folder / ".project").write_text(f"{site.workspace}\n")
    for name, data in files.items():
        site.write(name, data)
    with site.open() as shop:
        ran = run_on_bench(shop, CommandRequest(argv=(language,)))
    assert ran.completed.stdout.text == f"{folder}\n"


def test_an_environment_of_another_project_is_not_taken(site: Site):
    home = Path(os.path.expanduser("~"))
    for name in ("pypoetry/virtualenvs/shop-AAAAAAAA-py3.11", "../.virtualenvs/other"):
        interpreter(home / ".cache" / name)
    (home / ".virtualenvs/other/.project").write_text("/somewhere/else\n")
    site.write(".nvmrc", b"../../../secrets\n")
    assert found_environment(site.config, str(site.workspace)).found == {}


def test_a_toolchain_beside_the_home_is_followed_from_the_path(site: Site, tmp_path, monkeypatch):
    """Neither below the home nor in a known folder: only the PATH, or a link of it, leads there."""
    tools = interpreter(tmp_path / "data" / "tools" / "python-1")
    (tmp_path / "data/home/me").mkdir(parents=True)
    (tmp_path / "data/links").mkdir()
    (tmp_path / "data/links/python").symlink_to(tools / "bin/python")
    monkeypatch.setenv("HOME", str(tmp_path / "data/home/me"))
    monkeypatch.setenv("PATH", f"{tmp_path}/data/links:/usr/bin:/bin")
    with Project.open(load(), site.workspace) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("python",)))
        seen = run_on_bench(shop, CommandRequest(argv=("ls", str(tmp_path / "data"))))
    assert ran.completed.stdout.text == f"{tools}\n"
    assert "home" not in seen.completed.stdout.text


@pytest.mark.attack("A12")
def test_keys_beside_a_toolchain_stay_out_of_sight(site: Site, tmp_path, monkeypatch):
    tools = interpreter(tmp_path / "data" / "tools")
    (tools / "credentials").write_text("key")
    monkeypatch.setenv("PATH", f"{tools}/bin:/usr/bin:/bin")
    with Project.open(load(), site.workspace) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("/bin/sh", "-c", f"python; cat {tools}/credentials")))
    assert ran.completed.stdout.text == f"{tools}\n"
    assert "No such file" in ran.completed.stderr.text


def test_import_paths_of_the_workspace_are_kept_and_others_are_not(site: Site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{site.workspace}/src:/somewhere/else")
    monkeypatch.setenv("NODE_PATH", "/somewhere/else")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    with Project.open(load(), site.workspace) as shop:
        told = 'echo "$PYTHONPATH|${NODE_PATH-none}|${PYTEST_DISABLE_PLUGIN_AUTOLOAD-none}"'
        ran = run_on_bench(shop, CommandRequest(argv=("/bin/sh", "-c", told)))
    assert ran.completed.stdout.text == f"{site.workspace}/src|none|1\n"


def test_the_environment_that_runs_pawl_is_no_project_s(site: Site, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert "python" not in found_environment(load(), str(site.workspace)).found


def test_a_file_of_versions_that_is_no_version_is_not_looked_for(tmp_path: Path):
    (tmp_path / ".python-version").write_text("x" * 4_000_000)
    assert environments._version(str(tmp_path), "python") == ""
    (tmp_path / ".python-version").write_text("web-3.12\n")
    assert environments._version(str(tmp_path), "python") == "web-3.12"
