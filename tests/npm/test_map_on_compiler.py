"""Every entry of the map for scripts that reads a compiler, on what the project's own TypeScript and Node print."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pawl.core.diagnostic import Diagnostic
from pawl.repair.recovery import built_in, recover
from pawl.repair.sources import symbols_of

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("A12")]

LATER = "declare function later(): Promise<number>;\n"
WRONG = {
    "name": ("export const prices = [1];\nexport const n = pricse.length;\n", "TS2552", "typescript.misspelt"),
    "property": ("export const n = [1].lenght;\n", "TS2551", "typescript.misspelt"),
    "export": ('import { totl } from "../cart";\ntotl([]);\n', "TS2724", "typescript.misspelt"),
    "unknown": ("export const n = total([]);\n", "TS2304", "typescript.missing-name"),
    "module": ('import { total } from "../crat";\ntotal([]);\n', "TS2307", "typescript.missing-module"),
    "package": ('import lodash from "lodash";\nlodash();\n', "TS2307", "typescript.missing-package"),
    "generic": ("export interface Box<T> { value: T }\nexport let b: Box;\n", "TS2314", "typescript.type-arguments"),
    "token": ("export const n = Math.max(1, 2;\n", "TS1005", "typescript.expected-token"),
    "outside": (LATER + "export function f() {\n  return await later();\n}\n", "TS1308", "typescript.await-outside"),
    "promise": (LATER + "export const n = later().toFixed();\n", "TS2339", "typescript.missing-await"),
    "assigned": (LATER + "export const n: number = later();\n", "TS2322", "typescript.missing-await"),
    "passed": (LATER + "export const n = Math.max(later());\n", "TS2345", "typescript.missing-await"),
    "operand": (LATER + "export const n = later() * 2;\n", "TS2362", "typescript.missing-await"),
    "added": (LATER + "export const n = later() + 1;\n", "TS2365", "typescript.missing-await"),
    "condition": (LATER + "export const n = later() ? 1 : 2;\n", "TS2801", "typescript.missing-await"),
    "absent": ("export const n = { a: 1 }.zebra;\n", "TS2339", "typescript.missing-property"),
}
BY_CODE_FIX = {"typescript.missing-await", "typescript.missing-property"}
TOLD = {"typescript.missing-package"}
NO_COMPILER = {"javascript.port-in-use", "javascript.missing-node-modules"}


def sources_of(root: Path) -> dict[str, str]:
    return {f"src/{path.relative_to(root / 'src')}": path.read_text() for path in sorted((root / "src").rglob("*.ts*"))}


def said(root: Path) -> dict[str, list[Diagnostic]]:
    """What the compiler says, by file."""
    words = ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--pretty", "false"]
    printed = subprocess.run(words, cwd=root, capture_output=True, text=True).stdout
    found: dict[str, list[Diagnostic]] = {}
    for path, line, column, code, message in re.findall(r"^(\S+)\((\d+),(\d+)\): error (TS\d+): (.*)$", printed, re.M):
        finding = Diagnostic(tool="tsc", message=message, path=path, line=int(line), column=int(column), code=code)
        found.setdefault(path, []).append(finding)
    return found


@pytest.fixture(scope="module")
def project(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compiler") / "storefront"
    subprocess.run(["cp", "-al", str(installed), str(root)], check=True)
    (root / "src/wrong").mkdir()
    for name, (text, _, _) in WRONG.items():
        (root / f"src/wrong/{name}.ts").write_text(text)
    return root


def mended(project: Path, names: list[str]) -> set[str]:
    """Applies the first edit for each of the mistakes; the files about which the compiler still speaks."""
    sources, found = sources_of(project), said(project)
    for name in names:
        _, code, entry = WRONG[name]
        finding = next(one for one in found[f"src/wrong/{name}.ts"] if one.code == code)
        assert next(one.id for one in built_in("javascript") if one.match(finding.message) is not None) == entry
        if entry in BY_CODE_FIX:
            continue
        first = recover(finding, sources, symbols_of({}), built_in("javascript"))[0]
        assert bool(first.edits) == (entry not in TOLD), finding
        for path, text in first.applied(sources).items():
            (project / path).write_text(text)
    return {path.removeprefix("src/wrong/").removesuffix(".ts") for path in said(project)}


def test_each_entry_knows_what_the_compiler_prints_and_its_edit_makes_it_go_away(project: Path):
    # As long as a file does not parse, the compiler speaks of nothing else.
    assert "token" not in mended(project, ["token"])
    left = mended(project, [name for name in WRONG if name != "token"])
    assert left == {name for name, (_, _, entry) in WRONG.items() if entry in BY_CODE_FIX | TOLD}


def test_every_entry_that_reads_a_compiler_is_tried():
    assert {entry for _, _, entry in WRONG.values()} | NO_COMPILER == {entry.id for entry in built_in("javascript")}


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("const n = total([]);\n", "typescript.missing-name"),
        ("require('./crat');\n", "typescript.missing-module"),
        ("require('express');\n", "typescript.missing-package"),
        ("function f() { await g(); }\n", "typescript.await-outside"),
        (
            "const one = require('net').createServer().listen(0, '127.0.0.1', () => {\n"
            "  require('net').createServer().listen(one.address().port, '127.0.0.1');\n});\n",
            "javascript.port-in-use",
        ),
    ],
)
def test_what_node_prints_is_known(tmp_path: Path, text: str, entry: str):
    (tmp_path / "wrong.cjs").write_text(text)
    printed = subprocess.run(["node", "wrong.cjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60).stderr
    message = next(line for line in printed.splitlines() if re.match(r"\w*Error\b", line))
    assert next(one.id for one in built_in("javascript") if one.match(message) is not None) == entry
