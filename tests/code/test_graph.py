"""The import graph from the index: what an import means in each language, and the order that tasks are cut in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pawl.code.import_map import ImportMap, Resolver
from pawl.code.librarian import CodeLibrarian as Index
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles

pytestmark = pytest.mark.spec("A2", "E2")


def graph(folder: Path, files: Mapping[str, str]) -> ImportMap:
    for name, content in files.items():
        path = folder / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with Tree(folder / "work") as tree, Index(folder / "index.db", WorkspaceFiles(tree, preset("standard"))) as index:
        without_index = index.graph_at_once()
        index.refresh()
        assert index.graph() == without_index
        return without_index


LANGUAGES = {
    "python": (
        {"pkg/__init__.py": "# p\n", "pkg/a.py": "from . import b\nfrom pkg.sub.c import f\n", "pkg/b.py": "# b\n"}
        | {"pkg/sub/__init__.py": "# s\n", "pkg/sub/c.py": "def f(): ...\n"},
        "pkg/a.py",
        {"pkg/b.py", "pkg/sub/c.py"},
    ),
    "python in src": (
        {"src/pkg/__init__.py": "# p\n", "src/pkg/a.py": "x = 1\n", "tests/test_a.py": "from pkg.a import x\n"},
        "tests/test_a.py",
        {"src/pkg/a.py"},
    ),
    "javascript": (
        {"src/a.js": "import { b } from './b';\nconst c = require('../lib');\n", "src/b.js": "export const b = 1;\n"}
        | {"lib/index.js": "module.exports = 1;\n"},
        "src/a.js",
        {"src/b.js", "lib/index.js"},
    ),
    "typescript": (
        {"a.ts": "import { b } from './b.js';\nimport c from './c';\n", "b.ts": "export const b = 1;\n"}
        | {"c.tsx": "export default 1;\n"},
        "a.ts",
        {"b.ts", "c.tsx"},
    ),
    "go": (
        {"main.go": 'package main\nimport "example.com/x/store"\n', "store/a.go": "package store\n"}
        | {"store/b.go": "package store\n", "store/a_test.go": "package store\n"},
        "main.go",
        {"store/a.go", "store/b.go"},
    ),
    "rust": (
        {"src/main.rs": "mod net;\nuse crate::net::http::Client;\n", "src/net/mod.rs": "pub mod http;\n"}
        | {"src/net/http.rs": "pub struct Client;\n"},
        "src/main.rs",
        {"src/net/mod.rs", "src/net/http.rs"},
    ),
    "java": (
        {"src/main/java/org/x/A.java": "package org.x;\nimport org.y.B;\nclass A {}\n"}
        | {"src/main/java/org/y/B.java": "package org.y;\npublic class B {}\n"},
        "src/main/java/org/x/A.java",
        {"src/main/java/org/y/B.java"},
    ),
    "c": (
        {"src/a.c": '#include "b.h"\n#include <util/c.h>\n#include <stdio.h>\n', "src/b.h": "int b;\n"}
        | {"include/util/c.h": "int c;\n"},
        "src/a.c",
        {"src/b.h", "include/util/c.h"},
    ),
    "ruby": (
        {"lib/a.rb": "require_relative 'b'\nrequire 'x/c'\nrequire 'json'\n", "lib/b.rb": "B = 1\n"}
        | {"lib/x/c.rb": "C = 1\n"},
        "lib/a.rb",
        {"lib/b.rb", "lib/x/c.rb"},
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_imports_are_followed_to_their_files(tmp_path: Path, language: str):
    files, path, expected = LANGUAGES[language]
    assert set(graph(tmp_path, files).imported[path]) == expected


def test_imported_files_come_before_their_importers_and_cycles_by_name(tmp_path: Path):
    made = graph(
        tmp_path,
        {
            "a.py": "import b\n",
            "b.py": "import c\nimport d\n",
            "c.py": "import d\n",
            "d.py": "import c\n",
            "e.js": "1\n",
        },
    )
    assert made.order(["a.py", "b.py", "c.py", "d.py"]) == ("c.py", "d.py", "b.py", "a.py")
    assert made.neighbours("b.py") == {"a.py", "c.py", "d.py"}


def test_a_new_file_can_change_what_an_old_import_means(tmp_path: Path):
    assert graph(tmp_path, {"a.py": "import later\n"}).imported["a.py"] == frozenset()
    assert graph(tmp_path, {"later.py": "x = 1\n"}).imported["a.py"] == {"later.py"}


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("a.py", ""),
        ("a.py", "...." * 50),
        ("a.rs", "super::super::super::x"),
        ("a.js", "../../../../x"),
        ("a.txt", "x"),
    ],
)
def test_an_import_that_leads_nowhere_means_nothing(path: str, module: str):
    assert Resolver(["a.py", "b/c.py"]).targets(path, module, ()) in ([], ["a.py"])
