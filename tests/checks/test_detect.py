"""Which test framework a project uses, whatever the command is called."""

import pytest

from pawl.checks import catalog
from pawl.checks import catalog as commands
from pawl.checks.catalog import by_output, detect, read
from pawl.checks.output import Origin
from pawl.core.errors import ConfigError

PACKAGE = '{"scripts": {"test": "%s"}, "devDependencies": {%s}}'
MAKEFILE = ".PHONY: test\nall: build\n\ntest: unit lint\n\nunit:\n\t@echo running\n\t%s\n\nlint:\n\truff check\n"


def name(detection):
    return detection.framework.name if detection.framework else None


@pytest.mark.spec("E8")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q tests", "pytest"),
        ("python -m pytest", "pytest"),
        ("uv run --group dev pytest -x", "pytest"),
        ("coverage run -m pytest && coverage report", "pytest"),
        ("hatch test", "pytest"),
        ("python -m unittest discover -s tests", "unittest"),
        ("python manage.py test shop", "unittest"),
        ("npx vitest run", "vitest"),
        ("node_modules/.bin/jest --ci", "jest"),
        ("CI=1 react-scripts test", "jest"),
        ("nyc mocha --recursive", "mocha"),
        ("bundle exec rspec spec/models", "rspec"),
        ("cargo test --workspace", "cargo"),
        ("cargo +nightly test", "cargo"),
        ("go test ./...", "go"),
    ],
)
def test_the_words_of_a_command_name_the_framework(folder, command, expected):
    detection = detect(folder({"readme.md": "nothing"}), command)
    assert name(detection) == expected
    assert detection.certain


@pytest.mark.spec("E8")
@pytest.mark.parametrize(
    ("files", "command", "expected"),
    [
        ({"Makefile": MAKEFILE % "python -m pytest -q"}, "make test", "pytest"),
        ({"Makefile": MAKEFILE % "npm test", "package.json": PACKAGE % ("vitest run", "")}, "make -s test", "vitest"),
        ({"package.json": PACKAGE % ("jest --coverage", "")}, "npm test", "jest"),
        ({"package.json": PACKAGE % ("npm run unit", "")}, "yarn test", None),
        ({"package.json": '{"scripts": {"test": "pnpm run unit", "unit": "mocha"}}'}, "npm test", "mocha"),
        ({"tox.ini": "[testenv]\ncommands = pytest {posargs}\n"}, "tox -e py", "pytest"),
        ({"tox.ini": "[testenv]\ncommands = python -m unittest\n"}, "tox -e py311 -- -v", "unittest"),
        ({"noxfile.py": "def tests(session):\n    session.run('pytest')\n"}, "nox -s tests", "pytest"),
        ({"justfile": "test:\n    cargo test\n"}, "just test", "cargo"),
        ({"scripts/test.sh": "#!/bin/sh\nset -e\ngo test ./...\n"}, "./scripts/test.sh", "go"),
        ({"Rakefile": "task :spec do\n  sh 'rspec'\nend\n"}, "rake", "rspec"),
    ],
)
def test_a_command_of_the_project_leads_to_the_framework(folder, files, command, expected):
    assert name(detect(folder(files), command)) == expected


@pytest.mark.spec("E8")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": "import unittest\n"}, "pytest"),
        ({"pytest.ini": "[pytest]\n"}, "pytest"),
        ({"setup.cfg": "[tool:pytest]\n"}, "pytest"),
        ({"requirements-dev.txt": "pytest>=8\n", "tests/test_a.py": "def test_a(): pass\n"}, "pytest"),
        ({"pyproject.toml": '[dependency-groups]\ndev = ["pytest>=9"]\n'}, "pytest"),
        ({"test_a.py": "def test_a():\n    assert True\n"}, "pytest"),
        ({"test_a.py": "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"}, "unittest"),
        ({"package.json": PACKAGE % ("", '"vitest": "^4"')}, "vitest"),
        (
            {"vite.config.ts": "export default {\n  test: {},\n}\n", "package.json": PACKAGE % ("", '"vite": "8"')},
            "vitest",
        ),
        ({"package.json": PACKAGE % ("", '"jest": "^30"')}, "jest"),
        ({"jest.config.js": "module.exports = {}\n"}, "jest"),
        ({"package.json": PACKAGE % ("", '"mocha": "^12"')}, "mocha"),
        ({".mocharc.json": "{}"}, "mocha"),
        ({"a.test.ts": "import { test } from 'vitest'\n"}, "vitest"),
        ({".rspec": "", "spec/a_spec.rb": "RSpec.describe('a') {}\n"}, "rspec"),
        ({"Gemfile": "gem 'rspec'\n"}, "rspec"),
        ({"Cargo.toml": "[package]\n"}, "cargo"),
        ({"go.mod": "module a\n", "a_test.go": 'package a\n\nimport "testing"\n'}, "go"),
    ],
)
def test_without_a_command_the_files_decide(folder, files, expected):
    detection = detect(folder(files))
    assert name(detection) == expected
    assert detection.reason


@pytest.mark.spec("E8")
def test_a_command_that_tells_nothing_leaves_it_to_the_files(folder):
    detection = detect(folder({"pytest.ini": "[pytest]\n"}), "bazel test //...")
    assert name(detection) == "pytest"
    assert "'bazel test //...' does not name a framework" in detection.reason
    assert not detection.certain


@pytest.mark.spec("E8")
def test_where_nothing_is_known_it_says_why(folder):
    detection = detect(
        folder({"readme.md": "nothing", "package.json": "not json", "pyproject.toml": "= ="}), "bazel test"
    )
    assert detection.framework is None
    assert "'bazel test'" in detection.reason
    assert "no configuration, dependency or test file" in detection.reason


@pytest.mark.spec("E8")
@pytest.mark.parametrize("tool", catalog.ORDER)
def test_the_output_itself_gives_the_framework_away(captured, tool):
    for style in ("default",) if tool != "rspec" else ("default", "green"):
        assert by_output(captured(f"{tool}/shapes_{style}")).name == tool


@pytest.mark.spec("E8")
def test_an_unknown_command_is_counted_right_by_its_output(folder, captured):
    detection = detect(folder({"readme.md": "nothing"}), "make -C elsewhere check")
    report = read(captured("vitest/shapes_default"), detection, Origin(workspace="/project"))
    assert (report.counts.passed, report.counts.failed) == (3, 5)


@pytest.mark.spec("E8")
def test_a_guess_gives_way_to_what_the_output_shows(folder, captured):
    detection = detect(folder({"pytest.ini": "[pytest]\n"}))
    report = read(captured("unittest/shapes_default"), detection, Origin(workspace="/project"))
    assert (report.counts.failed, report.counts.errors) == (6, 3)


@pytest.mark.spec("E8")
def test_output_that_nobody_knows_is_read_for_tracebacks(folder, captured):
    detection = detect(folder({"readme.md": "nothing"}), "./run")
    report = read(captured("trace/scripts_python"), detection, Origin(workspace="/project"))
    assert [finding.path for finding in report.findings] == ["lib/inner.py"]


@pytest.mark.spec("E8", "B10")
@pytest.mark.parametrize(
    ("tool", "tests", "expected"),
    [
        ("pytest", ["tests/test_a.py::test_b[x y]"], ("py", "-m", "pytest", "tests/test_a.py::test_b[x y]")),
        ("unittest", ["tests.a.B.c", "tests.a.B.d"], ("py", "-m", "unittest", "tests.a.B.c", "tests.a.B.d")),
        (
            "vitest",
            ["a.test.js > total > adds (1)", "a.test.js > b"],
            (
                "npx",
                "--no-install",
                "vitest",
                "run",
                "--reporter=verbose",
                "a.test.js",
                "-t",
                r"^(?:total adds \(1\)|b)$",
            ),
        ),
        ("mocha", ["total adds"], ("npx", "--no-install", "mocha", "--grep", "^(?:total adds)$")),
        ("rspec", ["Prices adds"], ("rspec", "--example", "Prices adds")),
        ("cargo", ["a::b"], ("cargo", "test", "--no-fail-fast", "--", "--exact", "a::b")),
        ("go", ["TestA/one", "a/b::TestA/two", "TestB"], ("go", "test", "-json", "-run", "^(?:TestA|TestB)$", "./...")),
    ],
)
def test_chosen_tests_become_one_command(tool, tests, expected):
    assert commands.some_tests(catalog.named(tool), tests, python="py") == expected


@pytest.mark.spec("E7", "B10")
def test_the_tests_of_one_file_become_a_command(folder):
    assert commands.of_files(catalog.named("pytest"), ["tests/test_a.py"], python="py")[-1] == "tests/test_a.py"
    files = folder({"Cargo.toml": "[workspace]\n", "one/Cargo.toml": '[package]\nname = "shop-one"\n'})
    cargo = commands.of_files(catalog.named("cargo"), ["one/tests/outside.rs", "one/src/lib.rs"], files)
    assert cargo == ("cargo", "test", "--no-fail-fast", "--package=shop-one")
    assert commands.of_files(catalog.named("cargo"), ["src/lib.rs"], files) == ("cargo", "test", "--no-fail-fast")
    assert commands.of_files(catalog.named("go"), ["prices/a_test.go", "prices/b_test.go"])[-2:] == (
        "-json",
        "./prices",
    )


@pytest.mark.spec("B10")
def test_every_framework_has_its_commands():
    for framework in catalog.frameworks():
        assert commands.all_tests(framework)


@pytest.mark.spec("E8")
def test_a_framework_that_names_no_known_parser_is_refused():
    text = 'name = "x"\nlanguage = "x"\nparser = "nothing"\n[detect]\n[commands]\n'
    with pytest.raises(ConfigError, match=r"'mine'.*no parser 'nothing'"):
        catalog.framework(text, "mine")
    with pytest.raises(ConfigError, match="cannot be used"):
        catalog.framework("= not toml", "mine")
    with pytest.raises(ConfigError, match="no test framework 'nose'"):
        catalog.named("nose")
