"""How soon language servers say something about a small and a large project, and what kept verdicts save `pawl verify`.

    python benchmarks/diagnostics.py servers [--python DIR --file PATH] [--modules 1200] [--limit 60] [--only NAME ...]
    python benchmarks/diagnostics.py verify DIR [--rounds 3]

`servers` starts each server that is on the PATH or in this environment on a small project of its language with one
mistake, and on a large one: for Python the folder that is named (such as a checkout of Django), for TypeScript one with
so many modules that is made here, in which each module imports two others. It asks for the diagnostics of one file,
then again after an edit, and for the quick fixes of the mistake. `verify` runs `pawl verify --all` in a folder with no
verdicts kept, and again with nothing changed. Figures are seconds of wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pawl.checks.lsp.client import LanguageServer
from pawl.checks.lsp.servers import Server, servers
from pawl.core.errors import PawlError

SMALL = {
    "python": ("app.py", "import json\n\n\ndef read(text: str) -> int:\n    return jsn.loads(text)\n"),
    "typescript": ("app.ts", "export function read(text: string): number {\n  return txt.length;\n}\n"),
    "go": ("app.go", "package app\n\nfunc Read(text string) int {\n\treturn len(txt)\n}\n"),
    "rust": ("src/lib.rs", "pub fn read(text: &str) -> usize {\n    txt.len()\n}\n"),
}
BESIDE = {
    "python": {},
    "typescript": {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022"}}\n'
    },
    "go": {"go.mod": "module app\n\ngo 1.19\n"},
    "rust": {"Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n'},
}


@dataclass(frozen=True, slots=True)
class Measured:
    first: float
    again: float
    found: int
    fixes: int


def language_of(server: Server) -> str:
    return next(iter(server.languages))


def small(root: Path, language: str) -> str:
    name, text = SMALL[language]
    for path, content in {**BESIDE[language], name: text}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return name


def large(root: Path, modules: int) -> str:
    """TypeScript modules that each import two others; the last one has the mistake."""
    for path, content in BESIDE["typescript"].items():
        (root / path).write_text(content)
    for number in range(modules):
        before = [other for other in (number // 2, number - 1) if 0 <= other < number]
        lines = [f'import {{ Shape{one}, area{one} }} from "./m{one}.js";' for one in dict.fromkeys(before)]
        lines += [f"export interface Shape{number} {{ width: number; height: number; name: string }}"]
        lines += [
            f"export function area{number}(shape: Shape{number}): number {{ return shape.width * shape.height; }}"
        ]
        for one in dict.fromkeys(before):
            made = "{ width: shape.width, height: 1, name: shape.name }"
            lines += [f"export const via{one}in{number} = (shape: Shape{number}): number => area{one}({made});"]
            lines += [f"export type Both{one}in{number} = Shape{number} & Shape{one};"]
        (root / f"m{number}.ts").write_text("\n".join(lines) + "\n")
    with (root / f"m{modules - 1}.ts").open("a") as last:
        last.write("export const wrong: number = aera0;\n")
    return f"m{modules - 1}.ts"


async def asked(server: Server, program: str, root: Path, path: str, limit: float) -> Measured:
    text = (root / path).read_text(encoding="utf-8")
    language = server.language(path) or language_of(server)
    start = server.start((program,), str(root), sys.executable)
    began = time.monotonic()
    async with LanguageServer(start, limit=limit) as opened:
        opened.show(path, language, text)
        found = await opened.diagnostics(path)
        first = time.monotonic() - began
        began = time.monotonic()
        opened.show(path, language, text + "\n")
        found = await opened.diagnostics(path)
        again = time.monotonic() - began
        actions = [len(await opened.actions(path, one)) for one in found[:1]]
    return Measured(first, again, len(found), sum(actions))


def measured(server: Server, program: str, root: Path, path: str, limit: float) -> dict[str, object]:
    row: dict[str, object] = {"server": server.name, "project": root.name, "files": sum(1 for _ in root.rglob("*.*"))}
    try:
        seen = asyncio.run(asked(server, program, root, path, limit))
    except PawlError as error:
        return row | {"failed": error.message}
    times = {"first": round(seen.first, 2), "after an edit": round(seen.again, 3)}
    return row | times | {"found": seen.found, "fixes": seen.fixes}


def run_servers(options: argparse.Namespace) -> list[dict[str, object]]:
    rows = []
    search = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    with tempfile.TemporaryDirectory() as folder:
        for server in servers():
            program = shutil.which(server.program, path=search)
            if program is None or (options.only and server.name not in options.only):
                rows.append({"server": server.name, "failed": "not installed" if program is None else "not asked for"})
                continue
            language = language_of(server)
            root = Path(folder) / f"small-{server.name}"
            root.mkdir()
            rows.append(measured(server, program, root, small(root, language), options.limit))
            if language == "typescript":
                root = Path(folder) / f"large-{server.name}"
                root.mkdir()
                rows.append(measured(server, program, root, large(root, options.modules), options.limit))
            if language == "python" and options.python:
                rows.append(measured(server, program, options.python, options.file, options.limit))
    return rows


def run_verify(options: argparse.Namespace) -> list[dict[str, object]]:
    firsts, seconds = [], []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as state:
            environment = {**os.environ, "PAWL_STATE": state}
            for times in (firsts, seconds):
                began = time.monotonic()
                words = [sys.executable, "-m", "pawl", "verify", "--all", "--json"]
                subprocess.run(words, cwd=options.folder, env=environment, capture_output=True, check=False)
                times.append(time.monotonic() - began)
    first, second = statistics.median(firsts), statistics.median(seconds)
    row = {"project": options.folder.name, "first": round(first, 2), "unchanged": round(second, 2)}
    return [row | {"ratio": round(second / first, 3)}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    served = commands.add_parser("servers")
    served.add_argument("--python", type=Path, help="a large Python project")
    served.add_argument("--file", default="django/db/models/query.py", help="the file of it to ask about")
    served.add_argument("--modules", type=int, default=1200)
    served.add_argument("--limit", type=float, default=60.0)
    served.add_argument("--only", nargs="*", default=())
    served.set_defaults(run=run_servers)
    verified = commands.add_parser("verify")
    verified.add_argument("folder", type=Path)
    verified.add_argument("--rounds", type=int, default=3)
    verified.set_defaults(run=run_verify)
    options = parser.parse_args()
    for row in options.run(options):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
