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
    "nvm by the name of an alias": ("node", lambda w: "~/.nvm/versions/node/v18.20.1", {".nvmrc": b"lts/hydrogen\n"}),
    "the newest of nvm": ("node", lambda w: "~/.nvm/versions/node/v22.1.0", {".nvmrc": b"lts/*\n"}),
    "fnm in its old place": (
        "node",
        lambda w: "~/.fnm/node-versions/v20.11.1/installation",
        {".node-version": b"20\n"},
    ),
    "mise's other forms": (
        "node",
        lambda w: "~/.local/share/mise/installs/node/20.11.1",
        {".config/mise.toml": b"[tools]\nnode = ['20', '18']\n"},
    ),
    "python of mise": (
        "python",
        lambda w: "~/.local/share/mise/installs/python/3.99.1",
        {"mise.toml": b'[tools]\npython = {version = "3.99"}\n'},
    ),
    "python of asdf": ("python", lambda w: "~/.asdf/installs/python/3.99.1", {".tool-versions": b"python 3.99.1\n"}),
    "python of pyenv": ("python", lambda w: "~/.pyenv/versions/3.99.1", {".python-version": b"3.99\n"}),
    "an environment of a version": (
        "python",
        lambda w: "~/.pyenv/versions/3.12.4/envs/shop",
        {".python-version": b"3.12.4/envs/shop\n"},
    ),
    "micromamba": ("python", lambda w: "~/micromamba/envs/shop", {"environment.yml": b'name: "shop"\n'}),
    "conda in the workspace": ("python", lambda w: f"{w}/envs", {}),
    "asdf": ("node", lambda w: "~/.asdf/installs/nodejs/20.11.1", {".tool-versions": b"nodejs 20.11.1\n"}),
}


@pytest.mark.parametrize("way", PLACES)
def test_an_environment_that_is_not_activated_is_found_and_runs_on_a_bench(site: Site, way):
    language, place, files = PLACES[way]
    folder = interpreter(Path(place(site.workspace).replace("~", os.path.expanduser("~"))), language)
    if way == "virtualenvwrapper":
        (folder / ".project").write_text(f"{site.workspace}\n")
    if "alias" in way:
        for name, version in (("hydrogen", "v18.20.1"), ("*", "lts/hydrogen")):
            path = Path("~/.nvm/alias/lts", name).expanduser()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{version}\n")
    if "version" in way:
        (folder / "pyvenv.cfg").write_text("")
    for name, data in files.items():
        site.write(name, data)
    with site.open() as shop:
        ran = run_on_bench(shop, CommandRequest(argv=(language,)))
    assert ran.completed.stdout.text == f"{folder}\n"


def test_an_environment_that_a_link_of_the_tool_names_runs_on_a_bench(
    site: Site, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    """As pyenv-virtualenv lays it, and mise its short versions."""
    root = tmp_path_factory.mktemp("pyenv")
    monkeypatch.setenv("PYENV_ROOT", str(root))
    version = interpreter(root / "versions/3.12.1")
    (version / "lib/python3.12").mkdir()
    (version / "lib/python3.12/os.py").write_text("")
    folder = interpreter(version / "envs/shop")
    (folder / "pyvenv.cfg").write_text(f"home = {version}/bin\n")
    (version.parent / "shop").symlink_to(folder)
    site.write(".python-version", b"shop\n")
    with Project.open(load(), site.workspace) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("python",)))
    assert ran.completed.stdout.text == f"{folder}\n", ran


@pytest.mark.parametrize("place", [".tox/py", ".tox/py311", ".nox/tests-3-12", ".nox/test"])
def test_what_tox_or_nox_made_serves_where_the_python_of_the_path_has_no_pytest(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    folder, bare = interpreter(site.workspace / place), interpreter(tmp_path / "bare")
    interpreter(site.workspace / ".tox/lint")
    monkeypatch.setenv("PATH", f"{bare}/bin:/bin")
    assert found_environment(load(), str(site.workspace)).python == str(folder)
    (bare / "lib/python3.11/site-packages/pytest").mkdir(parents=True)
    assert found_environment(load(), str(site.workspace)).python == ""


@pytest.mark.parametrize(
    ("variable", "place", "file"),
    [
        ("FNM_DIR", "node-versions/v20.11.1/installation", ".nvmrc"),
        ("VOLTA_HOME", "tools/image/node/20.11.1", ".nvmrc"),
        ("MISE_DATA_DIR", "installs/node/20.11.1", ".nvmrc"),
        ("ASDF_DATA_DIR", "installs/nodejs/20.11.1", ".nvmrc"),
        ("MAMBA_ROOT_PREFIX", "envs/20", "environment.yml"),
    ],
)
def test_places_that_a_variable_names_are_looked_at(site: Site, tmp_path, monkeypatch, variable, place, file):
    folder = interpreter(tmp_path / "tools" / place, "python" if file.startswith("env") else "node")
    monkeypatch.setenv(variable, str(tmp_path / "tools"))
    site.write(file, b"name: 20\n" if file.startswith("env") else b"20\n")
    assert str(folder / "bin") in found_environment(load(), str(site.workspace)).path.split(":")


def test_the_environment_of_uv_may_be_named_from_the_workspace(site: Site, monkeypatch):
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "made/env")
    folder = interpreter(site.workspace / "made/env")
    assert found_environment(load(), str(site.workspace)).python == str(folder)
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "../env")
    interpreter(site.workspace.parent / "env")
    assert found_environment(load(), str(site.workspace)).found == {}


def test_an_interpreter_without_the_runner_that_the_path_has_is_not_taken(site: Site, tmp_path, monkeypatch):
    on_path = interpreter(tmp_path / "tools")
    (on_path / "lib/python3.11/site-packages/pytest").mkdir(parents=True)
    other = interpreter(Path("~/.pyenv/versions/3.99.1").expanduser())
    monkeypatch.setenv("PATH", f"{on_path}/bin:/usr/bin:/bin")
    site.write(".python-version", b"3.99\n")
    assert found_environment(load(), str(site.workspace)).found == {}
    (other / "lib/python3.99/site-packages/pytest").mkdir(parents=True)
    assert found_environment(load(), str(site.workspace)).python == str(other)
    site.write(".python-version", b"3.11\n")
    interpreter(Path("~/.pyenv/versions/3.11.1").expanduser())
    assert found_environment(load(), str(site.workspace)).found == {}


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
