"""The import map: who imports whom, and an order in which nothing comes before what it needs."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.code.import_map import ImportMap

pytestmark = pytest.mark.spec("A7")


def imported(files: dict[str, str], path: str) -> set[str]:
    return set(ImportMap.of(files).imported[path])


PACKAGE = {"pkg/__init__.py": "", "pkg/a.py": "", "pkg/b.py": "", "pkg/sub/__init__.py": "", "pkg/sub/c.py": ""}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pkg.a", {"pkg/a.py"}),
        ("import pkg.a as x, pkg.b", {"pkg/a.py", "pkg/b.py"}),
        ("from pkg import a", {"pkg/a.py"}),
        ("from pkg import a, NAME", {"pkg/a.py", "pkg/__init__.py"}),
        ("from pkg.a import function", {"pkg/a.py"}),
        ("from pkg import *", {"pkg/__init__.py"}),
        ("import pkg", {"pkg/__init__.py"}),
        ("import pkg.sub", {"pkg/sub/__init__.py"}),
        ("def f():\n    import pkg.sub.c", {"pkg/sub/c.py"}),
        ("if TYPE_CHECKING:\n    from pkg.sub import c", {"pkg/sub/c.py"}),
        ("from . import main", set()),
        ("import os, json", set()),
        ("import pkg.missing", set()),
        ("import pkg.a\n(", set()),
    ],
)
def test_absolute_imports_lead_to_the_files_they_name(source: str, expected: set[str]):
    assert imported({**PACKAGE, "main.py": source}, "main.py") == expected


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("pkg/x.py", "from . import a", {"pkg/a.py"}),
        ("pkg/x.py", "from .sub.c import y", {"pkg/sub/c.py"}),
        ("pkg/sub/x.py", "from .. import b", {"pkg/b.py"}),
        ("pkg/sub/x.py", "from ..a import y", {"pkg/a.py"}),
        ("pkg/sub/x.py", "from .... import y", set()),
        ("pkg/__init__.py", "from .a import y", {"pkg/a.py"}),
        ("pkg/x.py", "from . import NAME", {"pkg/__init__.py"}),
    ],
)
def test_relative_imports_start_at_the_files_own_package(path: str, source: str, expected: set[str]):
    assert imported({**PACKAGE, path: source}, path) == expected


def test_a_src_layout_is_seen_from_tests_and_from_within():
    files = {
        "src/app/__init__.py": "",
        "src/app/core.py": "",
        "src/app/main.py": "from app.core import run",
        "tests/test_core.py": "from app import core",
    }
    assert imported(files, "src/app/main.py") == {"src/app/core.py"}
    assert imported(files, "tests/test_core.py") == {"src/app/core.py"}


def test_scripts_find_their_siblings_and_namespace_packages_need_no_init():
    files = {"tool/run.py": "import lay", "tool/lay.py": "", "src/space/deep/x.py": "", "go.py": "import space.deep.x"}
    assert imported(files, "tool/run.py") == {"tool/lay.py"}
    assert imported(files, "go.py") == {"src/space/deep/x.py"}


def test_of_two_packages_with_one_name_the_files_own_is_meant():
    files = {
        "one/pkg/__init__.py": "",
        "one/pkg/a.py": "import pkg.b",
        "one/pkg/b.py": "",
        "two/pkg/__init__.py": "",
        "two/pkg/a.py": "import pkg.b",
        "two/pkg/b.py": "",
    }
    assert imported(files, "one/pkg/a.py") == {"one/pkg/b.py"}
    assert imported(files, "two/pkg/a.py") == {"two/pkg/b.py"}


def test_neighbours_are_both_the_imported_and_the_importers():
    made = ImportMap.of({"a.py": "import b", "b.py": "import c", "c.py": "", "d.py": ""})
    assert made.neighbours("b.py") == {"a.py", "c.py"}
    assert made.neighbours("d.py") == made.neighbours("unknown.py") == frozenset()


def test_order_follows_imports_even_through_files_that_are_not_asked_for():
    made = ImportMap.of({"a.py": "import m", "m.py": "import z", "z.py": ""})
    assert made.order(["a.py", "z.py"]) == ("z.py", "a.py")
    assert made.order(["notes.txt", "a.py", "m.py", "a.py"]) == ("m.py", "a.py", "notes.txt")


def test_a_cycle_comes_by_name_and_after_what_it_imports():
    files = {"c.py": "import a, d", "a.py": "import b", "b.py": "import c", "d.py": "", "e.py": "import a"}
    made = ImportMap.of(files)
    assert made.order(files) == ("d.py", "a.py", "b.py", "c.py", "e.py")


def test_a_file_that_does_not_parse_imports_nothing_but_can_be_imported():
    made = ImportMap.of({"a.py": "import b", "b.py": "def (", "c.py": b"\xff\xfe", "d.txt": "import a"})
    assert made.neighbours("b.py") == {"a.py"}
    assert made.imported["c.py"] == frozenset()
    assert "d.txt" not in made.imported


def test_a_chain_deeper_than_the_stack_of_python_is_ordered():
    files = {f"m{number:05}.py": f"import m{number + 1:05}" for number in range(5_000)}
    some = sorted(files)[::500]
    assert ImportMap.of(files).order(some) == tuple(reversed(some))


def test_a_doubtful_escape_in_a_file_is_no_warning_of_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert imported({"a.py": 'import b\nx = "\\d"', "b.py": ""}, "a.py") == {"b.py"}


@given(st.dictionaries(st.integers(0, 8), st.sets(st.integers(0, 8)), min_size=1))
def test_what_is_imported_and_does_not_import_back_always_comes_first(graph: dict[int, set[int]]):
    files = {f"m{node}.py": "\n".join(f"import m{target}" for target in targets) for node, targets in graph.items()}
    made = ImportMap.of(files)
    order = made.order(files)
    assert sorted(order) == sorted(files)

    def reaches(start: str, goal: str) -> bool:
        seen, waiting = set(), [start]
        while waiting:
            for target in made.imported[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        return goal in seen

    for place, path in enumerate(order):
        for earlier in order[:place]:
            assert not reaches(earlier, path) or reaches(path, earlier)
