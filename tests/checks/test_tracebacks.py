"""Files and lines out of texts that people paste: tracebacks, stacks, compiler diagnostics."""

import pytest

from pawl.checks.output import Origin, places, python_traces

ORIGIN = Origin(workspace="/project")


def seen(text, origin=ORIGIN):
    return [(place.path, place.line) for place in places(text, origin)]


@pytest.mark.spec("B6")
@pytest.mark.parametrize("name", ["python", "python_new", "python_colour"])
def test_a_python_traceback_gives_every_place_of_the_chain(captured, name):
    assert seen(captured(f"trace/scripts_{name}")) == [("lib/inner.py", 3), ("main.py", 3), ("lib/inner.py", 5)]


@pytest.mark.spec("B6")
def test_the_last_exception_of_a_chain_comes_last(captured):
    traces = python_traces(captured("trace/scripts_python").splitlines(), ORIGIN)
    assert [(trace.kind, trace.message) for trace in traces] == [
        ("ValueError", "invalid literal for int() with base 10: 'x'"),
        ("KeyError", "'x'"),
    ]


@pytest.mark.spec("B6")
def test_a_syntax_error_without_a_traceback_gives_its_place(captured):
    assert seen(captured("trace/scripts_python_syntax")) == [("broken.py", 1)]
    (trace,) = python_traces(captured("trace/scripts_python_syntax").splitlines(), ORIGIN)
    assert (trace.kind, trace.message) == ("SyntaxError", "invalid syntax")


@pytest.mark.spec("B6")
def test_an_exception_group_gives_the_places_of_its_parts(captured):
    assert seen(captured("trace/scripts_python_group")) == [("grouped.py", 11), ("grouped.py", 8), ("grouped.py", 2)]


@pytest.mark.spec("B6")
def test_a_node_stack_gives_the_workspace_and_not_node(captured):
    assert seen(captured("trace/scripts_node")) == [("lib/inner.js", 2), ("main.js", 4), ("main.js", 7)]


@pytest.mark.spec("B6")
@pytest.mark.parametrize("name", ["tsc", "tsc_pretty"])
def test_typescript_diagnostics_give_their_places(captured, name):
    assert set(seen(captured(f"trace/scripts_{name}"))) >= {("ts/app.ts", line) for line in (1, 3, 5, 7)}


@pytest.mark.spec("B6")
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("pytest/shapes_default", ("shop/prices.py", 14)),
        ("pytest/shapes_short", ("shop/prices.py", 14)),
        ("pytest/shapes_native", ("shop/prices.py", 14)),
        ("unittest/shapes_default", ("shop.py", 9)),
        ("vitest/shapes_default", ("src/prices.js", 3)),
        ("jest/shapes_default", ("src/prices.js", 3)),
        ("mocha/shapes_default", ("src/prices.js", 3)),
        ("rspec/shapes_default", ("lib/prices.rb", 3)),
        ("go/shapes_default", ("prices/prices.go", 12)),
    ],
)
def test_a_pasted_test_report_gives_the_place_where_it_was_raised(captured, name, place):
    assert place in seen(f"Please fix them:\n\n{captured(name)}\nThanks!")


@pytest.mark.spec("B6")
def test_library_files_and_files_outside_are_no_places(captured):
    found = seen(captured("pytest/collection_default"))
    assert ("lib.py", 1) in found
    assert not [path for path, _ in found if path.startswith(("/", ".."))]
    assert not [path for path, _ in seen(captured("vitest/shapes_default")) if "node_modules" in path]


@pytest.mark.spec("B6")
def test_plain_talk_gives_no_places():
    assert seen("At 10:30:12 the build (see a/b.txt: fine) took 3:20.\nIt was at noon: 12:00:00") == []
