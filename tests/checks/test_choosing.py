"""A project's files say which steps it has; the user's settings add, replace and leave out."""

import json
import shutil

import pytest

from pawl.checks.climb import StopPolicy, climb
from pawl.checks.command_step import built_in, load
from pawl.checks.ladder import CheckSettings, choose, with_absent
from pawl.checks.project_facts import CheckKind
from pawl.core.diagnostic import Severity, Status
from pawl.core.errors import ConfigError

PACKAGE = {"name": "shop", "scripts": {"build": "vite build"}, "devDependencies": {"vitest": "^4", "vite": "^8"}}
FRONT_END = {
    "package.json": json.dumps(PACKAGE),
    "tsconfig.json": "{}",
    "eslint.config.js": "export default [];\n",
    "src/cart.ts": "export const one = 1;\n",
    "src/cart.test.ts": 'import { it } from "vitest";\n',
}
GO = {"go.mod": "module shop\n\ngo 1.18\n", "shop.go": "package shop\n\nfunc One() int { return 1 }\n"}
GO_TEST = """package shop

import "testing"

func TestOne(t *testing.T) {
	if One() != 1 {
		t.Fatal()
	}
}
"""


def names(steps):
    return [step.name for step in steps]


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"app.py": "x = 1\n"}, ["syntax", "types", "lint", "tests"]),
        (FRONT_END, ["syntax (node)", "types (tsc)", "lint (eslint)", "build (script)", "tests"]),
        (GO, ["lint (go vet)", "build (go)", "tests"]),
        ({"Cargo.toml": "[package]\nname='x'\n"}, ["types (cargo)", "build (cargo)", "tests"]),
        ({"Makefile": "build:\n\tcc x.c\nlint: x\n\tcheck\n", "x.c": ""}, ["lint (make)", "build (make)", "tests"]),
        ({"app.py": "", "Makefile": "lint:\n\truff .\n"}, ["syntax", "types", "lint", "tests"]),
        ({"package.json": '{"scripts": {"typecheck": "tsc"}}', "tsconfig.json": "{}"}, ["types (script)", "tests"]),
        ({"biome.json": "{}"}, ["lint (biome)", "tests"]),
        ({"notes.md": ""}, ["tests"]),
    ],
    ids=["python", "front end", "go", "cargo", "make", "python with make", "script", "biome", "nothing"],
)
def test_the_steps_follow_from_the_files_in_the_order_of_the_ladder(folder, files, wanted):
    assert names(choose(folder(files))) == wanted


@pytest.mark.spec("A8")
def test_a_front_end_in_a_folder_is_verified_where_it_stands(folder):
    files = {"app.py": "", "test_app.py": "def test_a(): pass\n"} | {
        f"web/{path}": text for path, text in FRONT_END.items()
    }
    found = names(choose(folder(files)))
    assert found[:2] == ["syntax", "syntax (node) in web"]
    assert {"types (tsc) in web", "build (script) in web", "tests", "tests in web"} <= set(found)


@pytest.mark.spec("A8")
def test_the_tests_of_a_nested_project_are_not_run_from_the_root_as_well(folder):
    web = {"web/package.json": "{}", "web/a.test.js": 'import test from "node:test";\n'}
    both = choose(folder({"app.py": "", "pytest.ini": "", "test_app.py": "def test_a(): pass\n", **web}))
    assert [step.name for step in both if step.kind is CheckKind.TESTS] == ["tests", "tests in web"]


@pytest.mark.spec("A8")
def test_two_languages_at_the_root_have_their_tests_both(folder):
    files = {**FRONT_END, "app.py": "", "pytest.ini": "", "test_app.py": "def test_a(): pass\n"}
    assert [step.name for step in choose(folder(files)) if step.kind is CheckKind.TESTS] == ["tests", "tests (vitest)"]


@pytest.mark.spec("A8")
def test_every_kind_without_a_step_says_so_and_none_counts_as_passed(folder, subject):
    found = with_absent(choose(folder({"notes.md": ""})), CheckSettings())
    verdicts = climb(found, subject({"notes.md": ""}), stop=StopPolicy.NEVER)
    assert [verdict.step for verdict in verdicts] == list(CheckKind)
    assert {verdict.standing for verdict in verdicts} == {Status.SKIPPED}
    assert all(verdict.reason for verdict in verdicts)


@pytest.mark.spec("A8")
def test_the_user_leaves_out_replaces_and_adds(folder):
    own = load(
        {
            "step": [
                {
                    "name": "lint (eslint)",
                    "kind": "lint",
                    "command": ["my-linter"],
                    "when": {"files": ["tsconfig.json"]},
                },
                {"name": "spelling", "kind": "lint", "command": ["codespell"], "inputs": ["*.md"]},
            ]
        },
        "[verify]",
    )
    found = choose(folder(FRONT_END), CheckSettings(skip=frozenset({"build", "types (tsc)"}), own=own))
    assert names(found) == ["syntax (node)", "lint (eslint)", "spelling", "tests"]
    eslint = next(step for step in found if step.name == "lint (eslint)")
    assert eslint.step.rung.commands[0].words == ("my-linter",)


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"step": [{"name": "x", "kind": "lint"}]}, "command"),
        ({"step": [{"name": "x", "kind": "spelling", "command": ["y"]}]}, "spelling"),
        ({"step": [{"name": "x", "kind": "lint", "command": []}]}, "at least one word"),
        ({"step": [{"name": "x", "kind": "lint", "command": ["y"], "finding": "("}]}, "'x'"),
        ({"step": [{"name": "x", "kind": "lint", "command": ["y"], "finding": "(?P<where>.)"}]}, "message"),
        ({"step": [{"name": "x", "kind": "lint", "command": ["y"], "colour": 1}]}, "colour"),
        ({"step": [{"name": "x", "kind": "lint", "command": ["y"], "seconds": 0}]}, "seconds"),
        ({"step": "x"}, "array"),
    ],
)
def test_a_step_that_cannot_be_used_is_refused_by_name(table, word):
    with pytest.raises(ConfigError, match=word):
        load(table, "[verify]")


@pytest.mark.spec("A8")
def test_leaving_out_what_is_no_step_is_refused(folder):
    with pytest.raises(ConfigError, match="'spelling'"):
        choose(folder({"app.py": ""}), CheckSettings(skip=frozenset({"spelling"})))


def run(project, name, **settings):
    step = next(step for step in choose(project.files) if step.name == name)
    return step.run(project)


@pytest.mark.spec("A8")
def test_a_tool_that_is_missing_is_skipped_and_says_how_to_get_it(subject):
    verdict = run(subject(FRONT_END, tools=False), "types (tsc)")
    assert verdict.standing is Status.SKIPPED
    assert verdict.reason == "node_modules is missing; install it with 'npm install'"
    locked = subject({**FRONT_END, "pnpm-lock.yaml": ""}, tools=False)
    assert "pnpm install --frozen-lockfile" in run(locked, "types (tsc)").reason


@pytest.mark.spec("A8")
def test_a_change_that_a_step_does_not_look_at_is_none_of_its_business(subject):
    verdict = run(subject({**FRONT_END, "notes.md": "x"}, changed=("notes.md",)), "types (tsc)")
    assert (verdict.standing, verdict.reason) == (Status.SKIPPED, "nothing that it checks was changed")


needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_go
@pytest.mark.spec("A8")
def test_a_go_module_is_built_vetted_and_tested(subject):
    tests = {"shop_test.go": GO_TEST}
    verdicts = climb(choose(subject({**GO, **tests}).files), subject({**GO, **tests}))
    assert {verdict.step: verdict.standing for verdict in verdicts} == dict.fromkeys(
        ("lint (go vet)", "build (go)", "tests"), Status.PASS
    )
    broken = subject({**GO, "shop.go": "package shop\n\nfunc One() int { return two }\n"})
    verdict = run(broken, "build (go)")
    (finding,) = verdict.findings
    assert (finding.path, finding.line, finding.message) == ("shop.go", 3, "undefined: two")
    vetted = {"shop.go": 'package shop\n\nimport "fmt"\n\nfunc One() int { fmt.Printf("%d", "x"); return 1 }\n'}
    assert run(subject({**GO, **vetted}), "lint (go vet)").findings[0].line == 5


@needs_node
@pytest.mark.spec("A8")
def test_javascript_is_read_as_the_kind_of_module_it_is(subject):
    files = {
        "package.json": "{}",
        "old.js": "const x = require('fs');\nreturn;\n",
        "new.mjs": "export const x = await 1;\n",
        "tool.cjs": "#!/usr/bin/env node\nmodule.exports = 1;\n",
        "app/package.json": '{"type": "module"}',
    }
    assert run(subject(files), "syntax (node)").standing is Status.PASS
    verdict = run(subject({**files, "bad.js": "function f() {\n  return (1;\n}\n"}), "syntax (node)")
    (finding,) = verdict.findings
    assert (finding.path, finding.line, finding.code) == ("bad.js", 2, "SyntaxError")
    react = subject(
        {"package.json": '{"dependencies": {"react": "19"}}', "bad.js": "", "view.js": "x = <p>hello</p>;\n"}
    )
    assert "left to the build" in run(react, "syntax (node)").reason


@needs_node
@pytest.mark.spec("A8")
def test_a_script_whose_program_is_not_there_is_told_by_its_name(subject):
    files = {"package.json": '{"scripts": {"lint": "eslintx ."}}', "a.js": ""}
    assert run(subject(files), "lint (script)").reason.endswith("the script 'lint' (eslintx .) is not installed")


@needs_make
@pytest.mark.spec("A8")
def test_a_build_that_fails_without_a_readable_word_keeps_the_end_of_its_output(subject):
    verdict = run(subject({"Makefile": "build:\n\t@echo the linker is gone; exit 3\n"}), "build (make)")
    assert verdict.standing is Status.FAIL
    assert "the linker is gone" in verdict.findings[0].message
    placed = run(subject({"Makefile": "build:\n\t@echo 'x.c:3:1: no such thing'; exit 1\n"}), "build (make)")
    assert (placed.findings[0].path, placed.findings[0].line) == ("x.c", 3)


@needs_make
@pytest.mark.spec("A11")
def test_a_build_that_does_not_end_is_stopped_and_fails(subject):
    import dataclasses

    from pawl.core.execution import Limits

    project = dataclasses.replace(
        subject({"Makefile": "build:\n\t@echo begun; exec tail -f /dev/null\n"}), limits=Limits(seconds=0.5)
    )
    verdict = run(project, "build (make)")
    assert verdict.standing is Status.FAIL
    assert "timed out" in verdict.reason


ERRORS = {
    "types (tsc)": (
        "src/cart.ts(4,41): error TS2551: Property 'prize' does not exist on type 'Line'. Did you mean 'price'?\n",
        ("src/cart.ts", 4, "TS2551"),
    ),
    "types (cargo)": (
        "src/main.rs:2:5: error[E0425]: cannot find value `x` in this scope\n",
        ("src/main.rs", 2, "E0425"),
    ),
    "build (go)": ("# shop\n./shop.go:3:25: undefined: two\n", ("shop.go", 3, "")),
    "build (script)": (
        '/project/src/a.ts:7:1: ERROR: Expected ")" but found end of file\n',
        ("/project/src/a.ts", 7, ""),
    ),
    "lint (biome)": (
        "::error title=lint/suspicious/noDebugger,file=a.js,line=1,endLine=1,col=1,endColumn=9::No debugger.\n",
        ("a.js", 1, "lint/suspicious/noDebugger"),
    ),
}


@pytest.mark.spec("A8")
@pytest.mark.parametrize("name", ERRORS)
def test_what_the_tools_print_is_read_with_its_place(name):
    from pawl.checks.command_step import _verdict
    from pawl.checks.output import Origin
    from pawl.core.execution import Captured, Completed, Ending

    rung = next(rung for rung in built_in() if rung.name == name)
    output, wanted = ERRORS[name]
    data = output.encode()
    completed = Completed(ending=Ending.EXITED, code=1, stdout=Captured(head=data, total=len(data)))
    (finding,) = _verdict(rung, completed, Origin(), "").findings
    assert (finding.path, finding.line, finding.code) == wanted
    assert finding.severity is Severity.ERROR


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("package.json", '{\n  "name": "x",,\n}\n', 2),
        ("web/package.json", "{ broken", 1),
        ("pyproject.toml", "[project\n", 0),
    ],
)
def test_a_project_file_that_cannot_be_read_fails_by_name(subject, path, text, line):
    project = subject({path: text, "a.js": "const a = 1;\n"}, tools=False)
    step = next(one for one in choose(project.files) if one.name == "syntax (project files)")
    (finding,) = step.run(project).findings
    assert (finding.path, finding.line) == (path, line)


@pytest.mark.spec("A8")
def test_project_files_that_can_be_read_are_no_step(subject):
    sound = subject({"package.json": "\ufeff{}\n", "pyproject.toml": "[project]\n", "a.js": ""}, tools=False)
    assert "syntax (project files)" not in [one.name for one in choose(sound.files)]
