"""What an edit may not break: the syntax that was whole, and imports that are still used."""

from __future__ import annotations

import warnings

import pytest

from pawl.code import file_edits as imports
from pawl.code import file_edits as syntax
from pawl.code.file_edits import closest
from pawl.core.errors import ImportsDropped, SyntaxBroken

pytestmark = pytest.mark.spec("A6")


@pytest.mark.parametrize(
    ("path", "before", "after", "line"),
    [
        ("a.py", b"x = 1\n", b"x = 1\ny = (\n", 2),
        ("a.py", b"def f():\n    return 1\n", b"def f():\n    pass\nreturn 1\n", 3),
        ("A.PYI", b"x: int\n", b"x: int\nclass\n", 2),
        ("a.json", b'{"a": 1}', b'{\n"a": 1,\n}', 3),
        ("a.toml", b"a = 1\n", b"a = 1\nb =\n", 2),
        ("a.js", b"const a = 1;\n", b"const a = 1;\nconst b = (1;\n", 2),
        ("a.mjs", b"export const a = 1;\n", b"export const a = 1;\nfunction f( {\n", 2),
        ("a.jsx", b"const a = <p>a</p>;\n", b"const a = <p>{a</p>;\n", 1),
        ("a.ts", b"let a: number = 1;\n", b"let a: number = 1;\nlet b: = 2;\n", 2),
        ("src/A.TSX", b"export const A = () => <p/>;\n", b"export const A = () => {\n  return <p/>;\n", 1),
        ("a.go", b"package a\n", b"package a\n\nfunc f() {\n", 3),
    ],
)
def test_a_file_that_parsed_and_no_longer_does_is_refused_with_the_line(path, before, after, line):
    with pytest.raises(SyntaxBroken, match=f"line {line}"):
        syntax.check_syntax(path, before, after)


MODERN = {
    "a.js": "class A { #x = 1n; static { this.y ??= 2 } get z() { return this?.#x } }\nlabel: for (;;) break label;\n",
    "a.mjs": "import d from './d.json' with { type: 'json' };\nfor await (const x of y) {}\nconst r = /[/](?<n>x)/v;\n",
    "a.jsx": "export default () => <><A {...p} b={<i/>}>text {c} &amp; more</A></>;\n",
    "a.ts": "@dec() abstract class B<const T extends readonly unknown[]> { accessor x = 1; declare y?: T; #z!: T;\n"
    "  constructor(private readonly w: string) {} abstract f(x: unknown): asserts x is T; override g() {} }\n"
    "export const z = { a: 1 } as const satisfies R; import { type C } from 'c'; declare global { var q: any }\n",
    "a.tsx": "const f = <T,>(x: T) => <p key={x as string}>{x!}</p>;\n",
    "a.go": "package a\n\nfunc f[T ~int](x ...T) (y int) { for i := range 10 { defer func() { _ = i }() }; return }\n",
}


@pytest.mark.parametrize("path", MODERN)
def test_new_syntax_of_scripts_is_taken_without_a_note(path: str):
    assert syntax.check_syntax(path, b"", MODERN[path].encode()) == ()


@pytest.mark.parametrize("path", ["a.py", "a.json", "a.toml", "a.ts"])
def test_a_file_that_was_broken_before_may_stay_broken_and_is_said_to_be_unchecked(path: str):
    assert "did not parse before" in syntax.check_syntax(path, b"((", b"(((")[0]


def test_a_broken_file_that_is_mended_needs_no_note():
    assert syntax.check_syntax("a.py", b"x = (", b"x = ()") == ()


@pytest.mark.parametrize("path", ["main.rs", "Makefile", "tsconfig.json", "web/tsconfig.app.json"])
def test_what_has_no_checker_is_said_to_be_unchecked(path: str):
    assert "not checked" in syntax.check_syntax(path, b"{}", b"{ // comment")[0]


def test_a_doubtful_escape_sequence_is_neither_an_error_nor_a_warning_of_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert syntax.check_syntax("a.py", b"x = 1\n", b'x = "\\d"\n') == ()
        imports.check_imports("a.py", b"x = 1\n", b'x = "\\d"\n')


def test_nesting_that_no_parser_can_follow_is_a_broken_file_and_not_a_crash():
    deep = b"(" * 100_000
    with pytest.raises(SyntaxBroken):
        syntax.check_syntax("a.py", b"x = 1\n", deep)
    with pytest.raises(SyntaxBroken):
        syntax.check_syntax("a.json", b"[]", b"[" * 100_000)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("import os\nos.getcwd()\n", "os.getcwd()\n", "import os"),
        ("import os.path\nos.path.join()\n", "import os\nos.path.join()\n", "import os.path"),
        ("from a import b as c\nc()\n", "c()\n", "from a import b as c"),
        ("from a import b, c\nb(c)\n", "from a import b\nb(c)\n", "from a import c"),
        ("from . import b\nb()\n", "b()\n", r"from \. import b"),
        ("import a\ndef f():\n    return a.x\n", "def f():\n    return a.x\n", "import a"),
        ("from a import *\nthing()\n", "thing()\n", r"from a import \*"),
        ("from a import b\n__all__ = ['b']\n", "__all__ = ['b']\n", "from a import b"),
        ("from a import T\nx: T\n", "x: T\n", "from a import T"),
    ],
)
def test_an_import_that_vanishes_while_its_name_is_used_is_refused(before: str, after: str, named: str):
    with pytest.raises(ImportsDropped, match=named):
        imports.check_imports("a.py", before.encode(), after.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\nos.getcwd()\n", "x = 1\n"),
        ("from a import b\nb()\n", "from c import b\nb()\n"),
        ("from a import b\nb()\n", "def b(): ...\nb()\n"),
        ("from a import b\nb()\n", "def f(b): return b\n"),
        ("import os.path\nos.path.join()\n", "import os.path as path\npath.join()\n"),
        ("import a.b\na.b.c\n", "import a.b.c\na.b.c\n"),
        ("from a import *\nthing()\n", "from b import *\nthing()\n"),
        ("from a import *\nthing()\n", "print(1)\n"),
        ("try:\n    import a\nexcept ImportError:\n    a = None\na\n", "a = None\na\n"),
        ("import os\n(", "("),
    ],
)
def test_an_import_may_go_when_nothing_needs_it(before: str, after: str):
    imports.check_imports("a.py", before.encode(), after.encode())


def test_imports_are_judged_in_python_files_only():
    imports.check_imports("notes.md", b"import os\nos.getcwd()\n", b"os.getcwd()\n")


def test_the_closest_lines_of_a_large_repetitive_file_are_found():
    lines = [f"{number:08x} {number * 7919 % 65536:04x} ff ff" for number in range(20_000)]
    lines[12_345] = "the quick brown fox jumps over the lazy dog"
    assert closest(lines, "the quick brown fox jumped over a lazy dog")[0].line == 12_346
