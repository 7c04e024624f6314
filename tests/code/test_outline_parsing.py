"""What is read from source files of every language, and what hostile files cannot do."""

from __future__ import annotations

import random

import pytest

from pawl.code.code_model import Definition, DefinitionKind
from pawl.code.languages import language_of, languages, may_be_source
from pawl.code.parsers import UNREAD, ParserLimits, Parsers, SourceFile
from pawl.code.syntax import LARGEST, Import, Imported, Parsed, Reference, Use, parse

PYTHON = '''\
from ..shapes import Shape as Base, area
from math import *
import os.path as path, sys

LIMIT = 3


@registry.add(1)
class Circle(Base, metaclass=Meta):
    """A round one.

    More."""

    sides: int = 0

    def area(self, scale: List[Number] = ONE,
             *rest) -> float:
        'The area.'
        local = 1
        raise Unknown(reason=self.why)


async def main():
    def inner(): pass
'''


def read(name: str, source: str) -> Parsed:
    return parse(source.encode(), languages()[name])


def kinds(parsed: Parsed) -> list[tuple[str, str, int]]:
    return [(one.kind.value, one.qualified, one.line) for one in parsed.definitions]


def calls(parsed: Parsed) -> set[str]:
    return {one.name for one in parsed.references if one.use is Use.CALL}


def uses(parsed: Parsed) -> set[str]:
    return {one.name for one in parsed.references if one.use is Use.OTHER}


def imports(parsed: Parsed) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(one.module, [tuple(name) for name in one.names]) for one in parsed.imports]


def test_the_definitions_of_python_come_with_lines_signatures_and_docstrings():
    parsed = read("python", PYTHON)
    assert parsed.complete
    assert parsed.definitions == (
        Definition(
            kind=DefinitionKind.VARIABLE,
            name="LIMIT",
            qualified="LIMIT",
            start=5,
            line=5,
            end=5,
            depth=0,
            signature="LIMIT = 3",
        ),
        Definition(
            kind=DefinitionKind.CLASS,
            name="Circle",
            qualified="Circle",
            start=8,
            line=9,
            end=20,
            depth=0,
            signature="class Circle(Base, metaclass=Meta)",
            doc="A round one.",
        ),
        Definition(
            kind=DefinitionKind.FIELD,
            name="sides",
            qualified="Circle.sides",
            start=14,
            line=14,
            end=14,
            depth=1,
            signature="sides: int = 0",
        ),
        Definition(
            kind=DefinitionKind.METHOD,
            name="area",
            qualified="Circle.area",
            start=16,
            line=16,
            end=20,
            depth=1,
            signature="def area(self, scale: List[Number] = ONE, *rest) -> float",
            doc="The area.",
        ),
        Definition(
            kind=DefinitionKind.FUNCTION,
            name="main",
            qualified="main",
            start=23,
            line=23,
            end=24,
            depth=0,
            signature="async def main()",
        ),
        Definition(
            kind=DefinitionKind.FUNCTION,
            name="inner",
            qualified="main.inner",
            start=24,
            line=24,
            end=24,
            depth=1,
            signature="def inner()",
        ),
    )


def test_the_references_and_imports_of_python_come_in_order_with_lines():
    parsed = read("python", PYTHON)
    assert parsed.imports == (
        Import(module="..shapes", line=1, names=(Imported("Shape", "Base"), Imported("area", "area"))),
        Import(module="math", line=2, names=(Imported("*", "*"),)),
        Import(module="os.path", line=3, names=(Imported("", "path"),)),
        Import(module="sys", line=3),
    )
    assert parsed.references == (
        Reference("add", 8, Use.CALL),
        Reference("Base", 9, Use.OTHER),
        Reference("Meta", 9, Use.OTHER),
        Reference("int", 14, Use.OTHER),
        Reference("List", 16, Use.OTHER),
        Reference("Number", 16, Use.OTHER),
        Reference("ONE", 16, Use.OTHER),
        Reference("float", 17, Use.OTHER),
        Reference("Unknown", 20, Use.CALL),
        Reference("why", 20, Use.OTHER),
    )


def test_javascript_is_read():
    parsed = read(
        "javascript",
        """\
import main, {first as one} from "module";
import * as all from './all';
import "effects";
export {second} from "other";
const {x, y: z} = require("old"), whole = require("older");
/**
 * Doubles it.
 */
export const double = async (a) => times(a, callback);
class Shape extends Base { #secret = 1; area(scale) { return this.side.of(new Point()) } }
Shape.prototype.grow = function () { const local = () => 1; };
let view = <Panel title={name}/>;
function* walk() {}
""",
    )
    assert kinds(parsed) == [
        ("variable", "whole", 5),
        ("function", "double", 9),
        ("class", "Shape", 10),
        ("field", "Shape.#secret", 10),
        ("method", "Shape.area", 10),
        ("function", "grow", 11),
        ("function", "grow.local", 11),
        ("variable", "view", 12),
        ("function", "walk", 13),
    ]
    assert parsed.definitions[1].signature == "export const double = async (a) =>"
    assert parsed.definitions[1].doc == "Doubles it."
    assert calls(parsed) >= {"times", "of", "Point", "Panel"}
    assert uses(parsed) >= {"callback", "Base", "side", "name"}
    assert imports(parsed) == [
        ("module", [("default", "main"), ("first", "one")]),
        ("./all", [("", "all")]),
        ("effects", []),
        ("other", [("second", "second")]),
        ("old", [("x", "x"), ("y", "z")]),
        ("older", [("", "whole")]),
    ]


@pytest.mark.parametrize("name", ["typescript", "tsx"])
def test_typescript_is_read(name: str):
    parsed = read(
        name,
        """\
import type {Point} from "./point";
// What has an area.
@Sealed()
export abstract class Shape<T> extends Base<T> implements Drawn {
  private side: number = 1;
  abstract area(scale: Scale): number;
}
interface Drawn { draw(on: Canvas): void; colour: Colour }
type Either = Left | Right.Inner;
enum Size { Small, Large = 2 }
namespace Outer.Inner { export function help(): void {} }
declare function ambient(x: number): void;
""",
    )
    assert kinds(parsed) == [
        ("class", "Shape", 4),
        ("field", "Shape.side", 5),
        ("method", "Shape.area", 6),
        ("interface", "Drawn", 8),
        ("method", "Drawn.draw", 8),
        ("field", "Drawn.colour", 8),
        ("type", "Either", 9),
        ("enum", "Size", 10),
        ("field", "Size.Small", 10),
        ("field", "Size.Large", 10),
        ("module", "Outer.Inner", 11),
        ("function", "Outer.Inner.help", 11),
        ("function", "ambient", 12),
    ]
    shape = parsed.definitions[0]
    assert (shape.start, shape.end, shape.doc) == (3, 7, "What has an area.")
    assert shape.signature == "export abstract class Shape<T> extends Base<T> implements Drawn"
    assert uses(parsed) >= {"Base", "Drawn", "Scale", "Canvas", "Colour", "Left", "Inner"}
    assert imports(parsed) == [("./point", [("Point", "Point")])]


def test_go_is_read():
    parsed = read(
        "go",
        """\
package shapes
import (
  "fmt"
  near "a/b"
)
const One, Two = 1, 2
// Circle is round.
type Circle struct { Radius float64; Name, Label string }
type Drawn interface { Draw(on Canvas) error }
type Alias = other.Type
// Area of it.
func (c *Circle[T]) Area(scale int) (float64, error) { var local = 1; fmt.Println(c.Radius); return compute(local) }
func New() Circle { return Circle{} }
""",
    )
    assert kinds(parsed) == [
        ("variable", "One", 6),
        ("variable", "Two", 6),
        ("struct", "Circle", 8),
        ("field", "Circle.Radius", 8),
        ("field", "Circle.Name", 8),
        ("field", "Circle.Label", 8),
        ("interface", "Drawn", 9),
        ("method", "Drawn.Draw", 9),
        ("type", "Alias", 10),
        ("method", "Circle.Area", 12),
        ("function", "New", 13),
    ]
    assert parsed.definitions[2].signature == "type Circle struct"
    assert parsed.definitions[-2].doc == "Area of it."
    assert parsed.definitions[-2].signature == "func (c *Circle[T]) Area(scale int) (float64, error)"
    assert calls(parsed) == {"Println", "compute"}
    assert uses(parsed) >= {"Canvas", "Type", "Radius", "Circle"}
    assert imports(parsed) == [("fmt", []), ("a/b", [("", "near")])]


def test_rust_is_read():
    parsed = read(
        "rust",
        """\
use a::b::{self, c as d, e::{f, g}};
use x::*;
mod near;
/// What is round.
#[derive(Debug)]
pub struct Circle<T> { pub radius: T }
trait Drawn: Base { fn draw(&self); }
impl<T> Drawn for Circle<T> where T: Number {
    fn draw(&self) { self.paint(); near::help::<T>(1); println!("x"); }
}
mod inner { pub(crate) fn deep() -> Result<A, b::B> { compute(k) } }
enum Size { Small, Large(u8) }
macro_rules! many { () => {} }
""",
    )
    assert kinds(parsed) == [
        ("struct", "Circle", 6),
        ("field", "Circle.radius", 6),
        ("interface", "Drawn", 7),
        ("method", "Drawn.draw", 7),
        ("implementation", "Circle", 8),
        ("method", "Circle.draw", 9),
        ("module", "inner", 11),
        ("function", "inner.deep", 11),
        ("enum", "Size", 12),
        ("field", "Size.Small", 12),
        ("field", "Size.Large", 12),
        ("macro", "many", 13),
    ]
    assert parsed.definitions[0].doc == "What is round."
    assert parsed.definitions[4].signature == "impl<T> Drawn for Circle<T> where T: Number"
    assert calls(parsed) == {"paint", "help", "println", "compute"}
    assert imports(parsed) == [
        ("a::b", [("", "b"), ("c", "d")]),
        ("a::b::e", [("f", "f"), ("g", "g")]),
        ("x", [("*", "*")]),
        ("near", []),
    ]


def test_java_is_read():
    parsed = read(
        "java",
        """\
package p.q;
import a.b.Shape;
import static a.b.Shape.area;
import a.c.*;
/**
 * What is round.
 */
@Entity(name = "c")
public class Circle<T> extends Base<T> implements Drawn {
  private final int radius = 1, sides;
  Circle(int radius) { super(radius); }
  @Override
  public <U> Box<U> draw(Canvas on)
      throws Problem { this.paint(Colour.RED); return new Box<U>(); }
  enum Size { SMALL, LARGE(1) }
}
interface Drawn { void draw(); }
record Pair(int left) { }
""",
    )
    assert kinds(parsed) == [
        ("class", "Circle", 9),
        ("field", "Circle.radius", 10),
        ("field", "Circle.sides", 10),
        ("method", "Circle.Circle", 11),
        ("method", "Circle.draw", 13),
        ("enum", "Circle.Size", 15),
        ("field", "Circle.Size.SMALL", 15),
        ("field", "Circle.Size.LARGE", 15),
        ("interface", "Drawn", 17),
        ("method", "Drawn.draw", 17),
        ("class", "Pair", 18),
    ]
    assert (parsed.definitions[0].start, parsed.definitions[0].doc) == (8, "What is round.")
    assert parsed.definitions[4].signature == "public <U> Box<U> draw(Canvas on) throws Problem"
    assert calls(parsed) == {"paint", "Box"}
    assert uses(parsed) >= {"Base", "Drawn", "Canvas", "Problem", "RED", "Override"}
    assert imports(parsed) == [("a.b", [("Shape", "Shape")]), ("a.b.Shape", [("area", "area")]), ("a.c", [("*", "*")])]


def test_c_is_read():
    parsed = read(
        "c",
        """\
#include "near.h"
#include <far/away.h>
#define LIMIT 3
typedef struct point { int x; } point_t, *point_p;
/* Moves it.
 * Far. */
static int *move(point_t *point, int by) { int local = 1; return shift(point->x, by); }
int declared(void);
extern int shared;
#ifdef MORE
void more(void) { }
#endif
""",
    )
    assert kinds(parsed) == [
        ("macro", "LIMIT", 3),
        ("type", "point_t", 4),
        ("type", "point_p", 4),
        ("struct", "point", 4),
        ("field", "point.x", 4),
        ("function", "move", 7),
        ("function", "declared", 8),
        ("variable", "shared", 9),
        ("function", "more", 11),
    ]
    assert parsed.definitions[5].signature == "static int *move(point_t *point, int by)"
    assert parsed.definitions[5].doc == "Moves it."
    assert calls(parsed) == {"shift"}
    assert imports(parsed) == [("near.h", []), ("far/away.h", [])]


def test_cpp_is_read():
    parsed = read(
        "cpp",
        """\
#include <vector>
namespace outer::inner {
// What is round.
template <class T>
class Circle : public Base<T> { public: Circle(); ~Circle(); int area(int) const; private: int radius_ = 1; };
using Alias = Box<int>;
}
int outer::inner::Circle<T>::area(int by) const { std::sort(by); Point local(1); return this->grow(); }
template <typename T> T twice(T value) { return value; }
""",
    )
    assert kinds(parsed) == [
        ("module", "outer.inner", 2),
        ("class", "outer.inner.Circle", 5),
        ("method", "outer.inner.Circle.Circle", 5),
        ("method", "outer.inner.Circle.~Circle", 5),
        ("method", "outer.inner.Circle.area", 5),
        ("field", "outer.inner.Circle.radius_", 5),
        ("type", "outer.inner.Alias", 6),
        ("function", "outer.inner.Circle.area", 8),
        ("function", "twice", 9),
    ]
    assert (parsed.definitions[1].start, parsed.definitions[1].doc) == (4, "What is round.")
    assert calls(parsed) >= {"sort", "grow"}
    assert imports(parsed) == [("vector", [])]


def test_ruby_is_read():
    parsed = read(
        "ruby",
        """\
require "set"
require_relative 'near'
module Outer::Inner
  # What is round.
  class Circle < Base
    include Drawn
    LIMIT = 1
    attr_reader :radius, :name
    def area(scale, *rest)
      grow(scale)
    end
    def self.unit; end
  end
end
""",
    )
    assert kinds(parsed) == [
        ("module", "Outer.Inner", 3),
        ("class", "Outer.Inner.Circle", 5),
        ("variable", "Outer.Inner.Circle.LIMIT", 7),
        ("field", "Outer.Inner.Circle.radius", 8),
        ("field", "Outer.Inner.Circle.name", 8),
        ("method", "Outer.Inner.Circle.area", 9),
        ("method", "Outer.Inner.Circle.unit", 12),
    ]
    assert parsed.definitions[1].doc == "What is round."
    assert parsed.definitions[5].signature == "def area(scale, *rest)"
    assert calls(parsed) >= {"grow", "include"} and uses(parsed) >= {"Base", "Drawn"}
    assert imports(parsed) == [("set", []), ("./near", [])]


def test_a_broken_file_gives_what_can_be_read_and_says_that_it_is_not_all():
    parsed = read(
        "python", "def before(): pass\n\ndef broken(:\n    pass\n\nclass After:\n    def method(self): pass\n"
    )
    assert {"before", "After"} <= {one.name for one in parsed.definitions}
    assert not parsed.complete


def test_a_file_that_is_too_long_is_cut_at_a_line():
    line = b"def function(): pass\n"
    parsed = parse(line * (LARGEST // len(line) + 10), languages()["python"])
    assert len(parsed.definitions) == LARGEST // len(line)
    assert not parsed.complete


def test_a_byte_order_mark_line_ends_of_another_system_and_odd_bytes_are_no_obstacle():
    parsed = parse(b"\xef\xbb\xbfdef one(): pass\r\ndef two(): return '\xff'\r\n", languages()["python"])
    assert kinds(parsed) == [("function", "one", 1), ("function", "two", 2)]
    assert parse(b"", languages()["java"]) == Parsed()


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("a/b.py", b"", "python"),
        ("B.PY", b"", "python"),
        ("a.h", b"int f(void);\n", "c"),
        ("a.h", b"namespace x {\nclass A;\n}\n", "cpp"),
        ("Rakefile", b"", "ruby"),
        ("bin/tool", b"#!/usr/bin/env -S python3.11 -u\n", "python"),
        ("bin/tool", b"#!/usr/bin/node\n", "javascript"),
        ("bin/tool", b"#!/bin/sh\n", None),
        ("bin/tool", b"\x7fELF", None),
        (".py", b"", None),
        ("notes.txt", b"#!/usr/bin/python\n", None),
    ],
)
def test_a_language_is_known_by_name_by_extension_by_content_or_by_the_first_line(path: str, source: bytes, name):
    language = language_of(path, source)
    assert (language.name if language else None) == name


def test_only_what_may_be_source_is_read():
    paths = ["a.py", "tool", "Gemfile", ".env", "a.txt", "a.png", "x.TSX"]
    assert [path for path in paths if may_be_source(path)] == ["a.py", "tool", "Gemfile", ".env", "x.TSX"]


def test_what_a_process_answers_is_what_was_parsed():
    parsed = read("python", PYTHON)
    with Parsers() as parsers:
        answered = parsers.parse(PYTHON.encode(), languages()["python"])
        assert (answered.definitions, answered.complete) == (parsed.definitions, parsed.complete)


HOSTILE = {
    "memory": ("java", b"a<" * 100_000),
    "memory, later": ("c", b"/ class?" * 20_000),
    "crash": ("ruby", b"! <<Alambda " * 2_000),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_kills_its_parser_costs_only_itself(case: str):
    name, source = HOSTILE[case]
    limits = ParserLimits(memory_bytes=400 << 20, seconds=2.0)
    with Parsers(limits) as parsers:
        assert parsers.parse(source, languages()[name]) == UNREAD
        assert len(parsers.parse(b"def f(): pass\n", languages()["python"]).definitions) == 1


def test_a_file_that_takes_too_long_is_given_up():
    with Parsers(ParserLimits(seconds=0.05)) as parsers:
        tokens = random.Random(1).choices(["(", ")", "{", "<", "=>", "def ", "x", '"', "\n", ":"], k=300_000)
        assert parsers.parse("".join(tokens).encode(), languages()["python"]) == UNREAD
        assert parsers.parse(b"def f(): pass\n", languages()["python"]).complete


def test_many_files_are_parsed_by_several_processes_in_their_order():
    python = languages()["python"]
    sources = [SourceFile(f"{number}.py", f"def f{number}(): pass\n".encode(), python) for number in range(50)]
    with Parsers(ParserLimits(processes=2)) as parsers:
        found = [(source.path, parsed.definitions[0].name) for source, parsed in parsers.parse_all(iter(sources))]
        assert found == [(f"{number}.py", f"f{number}") for number in range(50)]
        for _, parsed in parsers.parse_all(iter(sources)):
            assert parsed.complete
            break


@pytest.mark.slow
@pytest.mark.parametrize("name", list(languages()))
def test_no_noise_breaks_the_parsers(name: str):
    dice = random.Random(7)
    words = [b"(", b")", b"{", b"}", b"<", b">", b"%w(", b"<<A ", b"?", b"class ", b"x", b"\n", b'"', b"/*", b"#", b";"]
    with Parsers(ParserLimits(memory_bytes=400 << 20, seconds=0.5)) as parsers:
        for _ in range(60):
            unit = b"".join(dice.choices(words, k=dice.randint(1, 5)))
            assert isinstance(parsers.parse(unit * 4_000, languages()[name]), Parsed)
        for _ in range(20):
            assert isinstance(parsers.parse(dice.randbytes(50_000), languages()[name]), Parsed)
        assert parsers.parse(b"x", languages()[name]) is not UNREAD
