"""A verdict is not kept over an edit in place of what is installed, however well its time and size are set back."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import Project

pytestmark = [pytest.mark.spec("A8"), pytest.mark.attack("A54")]


def edited_in_place(path: Path, old: bytes, new: bytes) -> None:
    assert len(old) == len(new)
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def verdict_of(pawl: Pawl, code: int) -> tuple[bool, str]:
    (tests,) = (one for one in pawl.json("verify", "--all", code=code)["steps"] if one["step"] == "tests")
    return tests["cached"], tests["standing"]


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("folder", ["", "packages/deep/"])
def test_an_edit_deep_in_node_modules_is_seen(project: Project, monkeypatch: pytest.MonkeyPatch, folder: str):
    monkeypatch.setenv("PATH", f"{Path(shutil.which('node') or '').parent}:{os.defpath}")
    test = (
        f"const test = require('node:test'), dep = require('./{folder}node_modules/dep/lib/inner.js');\n"
        "test('it', () => { if (dep !== 1) throw new Error('no'); });\n"
    )
    inner = f"{folder}node_modules/dep/lib/inner.js"
    pawl = project({"it.test.js": test, inner: "module.exports = 1;\n", ".gitignore": "node_modules\n"})
    assert verdict_of(pawl, 0) == (False, "pass")
    assert verdict_of(pawl, 0) == (True, "pass")
    edited_in_place(pawl.workspace / inner, b"= 1", b"= 2")
    assert verdict_of(pawl, 1) == (False, "fail")


@pytest.mark.whole
@pytest.mark.parametrize("place", [".venv", "../outside"])
def test_an_edit_deep_in_site_packages_is_seen(project: Project, monkeypatch: pytest.MonkeyPatch, place: str):
    test = (
        "import unittest\n\nfrom dep.inner import VALUE\n\n\n"
        "class Its(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(VALUE, 1)\n"
    )
    pawl = project({"test_it.py": test, ".gitignore": ".venv\n"})
    environment = (pawl.workspace / place).resolve()
    venv.create(environment, symlinks=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    monkeypatch.setenv("PATH", f"{environment}/bin:{os.defpath}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inner = environment / "lib" / version / "site-packages/dep/inner.py"
    inner.parent.mkdir()
    inner.write_text("VALUE = 1\n")
    assert verdict_of(pawl, 0) == (False, "pass")
    assert verdict_of(pawl, 0) == (True, "pass")
    edited_in_place(inner, b"= 1", b"= 2")
    assert verdict_of(pawl, 1) == (False, "fail")
