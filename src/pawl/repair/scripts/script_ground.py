"""The ground of one repair of TypeScript or JavaScript: the bench, what is checked on it, what stood there before."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pawl.checks import catalog as commands
from pawl.checks.catalog import detect, named
from pawl.checks.project import CheckKind, Folder
from pawl.checks.steps import Tests
from pawl.code.import_map import Resolver
from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.core.errors import CannotFix, NoTests, UsageError
from pawl.repair.ground import RepairGround
from pawl.repair.model import StageBegun
from pawl.repair.recoveries.scripts import ENDINGS
from pawl.repair.targets import files_of, reached
from pawl.workspace.bench import Bench

MOST_SOURCES = 3000
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "e2e", "cypress"})
_READ = (CheckKind.SYNTAX, CheckKind.TYPES)


def is_script_test(path: str) -> bool:
    """Whether a file belongs to the tests, which are never edited."""
    *folders, name = path.split("/")
    stem = name.rsplit(".", 1)[0]
    return (
        ".test." in name
        or ".spec." in name
        or stem in ("test", "tests", "setupTests")
        or stem.endswith(("-test", "_test"))
        or stem.startswith("test-")
        or not _TEST_FOLDERS.isdisjoint(folders)
        or name.startswith(("vitest.", "jest.", "vite.config", "eslint.config"))
    )


def is_script_project(files: Folder, test_command: Sequence[str]) -> bool:
    """Whether the tests, or without any the sources, are TypeScript or JavaScript."""
    command = shlex.join(test_command) if test_command else None
    framework = detect(files, command).framework
    if framework is not None:
        return framework.language == "javascript"
    return command is None and (files.exists("package.json") or files.exists("tsconfig.json"))


@dataclass(slots=True)
class ScriptGround(RepairGround):
    def __post_init__(self) -> None:
        known = tuple(self.bench.files.walk()) if self.request.targets else ()
        for target in self.request.targets:
            if not any(path.endswith(ENDINGS) for path in files_of(target, known)):
                raise UsageError(
                    f"{target!r} holds no TypeScript or JavaScript", advice="name sources that may be edited, or tests"
                )

    def first_runs(self) -> tuple[tuple[CheckResult, ...], CheckResult]:
        """The verdicts of compilers and suite before anything is changed; the budget is spent from then on."""
        self.listen(StageBegun(name="suite"))
        read = self.read()
        tests = self.run_tests()
        if tests.standing is Status.SKIPPED and not findings_of(read):
            if "missing" in tests.reason or "installed" in tests.reason:
                raise CannotFix(
                    f"the tests cannot run: {tests.reason}",
                    advice="; ".join(self.notes) or "install them with: npm install",
                )
            raise NoTests(f"no tests found: {tests.reason}", advice="name the command with --test 'CMD'")
        if tests.standing is Status.FAIL and not findings_of((*read, tests)):
            said = tests.findings[0].message if tests.findings else tests.reason
            raise CannotFix(
                f"the tests cannot run: {said.splitlines()[0] if said else 'their command fails'}",
                advice="mend what their command says, or name another one with --test 'CMD'",
            )
        self.start_clock(len(findings_of((*read, tests))))
        return read, tests

    def read(self) -> tuple[CheckResult, ...]:
        """The compilers' verdicts on the sources."""
        return self.verifier.check_bench(_READ, self.bench.files, self.bench)

    def run_tests(self, seconds: float | None = None) -> CheckResult:
        """The suite, also where only a script of the package says how it runs."""
        results = self.verifier.check_bench((CheckKind.TESTS,), self.bench.files, self.bench, seconds=seconds)
        return results[0] if results else Tests().run(self.subject)

    def run_files(self, framework: str, paths: Sequence[str], seconds: float) -> CheckResult:
        """The project's own runner on some test files; on the whole suite where it runs in its own way."""
        if self.request.test_command or not paths or not self.bench.files.exists("package.json"):
            return self.run_tests(seconds)
        words = (*commands.one_file(named(framework), paths[0]), *paths[1:])
        subject = self.verifier.subject(self.bench.files, self.bench, seconds)
        return Tests(framework=framework, command=words).run(subject)

    def sources(self) -> dict[str, str]:
        return self.texts([path for path in self.bench.files.walk() if path.endswith(ENDINGS)][:MOST_SOURCES])

    def editable(self, sources: Sequence[str]) -> tuple[str, ...]:
        """The sources that may be edited: no tests, and only what the user points at, if they do."""
        wanted = [one for one in self.request.targets if not is_script_test(one)]
        inside = [
            path for path in sources if not wanted or any(path == one or path.startswith(f"{one}/") for one in wanted)
        ]
        return tuple(path for path in inside if not is_script_test(path) and not path.endswith(".d.ts"))

    def verify(self, opened: Callable[[], Bench], first: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
        """Runs every check; only what is new counts against the edits. `first` are results without them."""
        self.listen(StageBegun(name="verify"))
        verifier = replace(self.verifier, opened=opened, listen=self.listen)
        return verifier.verify_bench(self.bench, tuple(self.edited), first)


def findings_of(verdicts: Sequence[CheckResult]) -> list[Diagnostic]:
    """The findings that count; equal ones as often as they are found."""
    return [one for verdict in verdicts for one in verdict.findings if one.code != "incomplete"]


_IMPORTED = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*['"]([^'"\n]+)['"]""")


def failing_files(findings: Iterable[Diagnostic], sources: Mapping[str, str]) -> tuple[str, ...]:
    """The test files of failing tests; every test file where one cannot be told."""
    found: dict[str, None] = {}
    for finding in findings:
        places = (finding.test.split(" > ")[0], finding.path, *(frame.path for frame in finding.frames))
        file = next((path for path in places if path in sources and is_script_test(path)), "")
        if not file:
            return tuple(path for path in sources if is_script_test(path))
        found[file] = None
    return tuple(found)


def reached_scripts(tests: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The files that the tests import, directly or not, the nearest first."""
    resolver = Resolver(sources)

    def imported(path: str) -> Iterator[str]:
        names = _IMPORTED.findall(sources.get(path, ""))
        return filter(None, (_target(name, path, sources, resolver) for name in names))

    return [path for path in reached(tests, imported) if path not in tests]


def lines_of(findings: Iterable[Diagnostic]) -> dict[str, list[int]]:
    """The lines that the stacks lead through, by file."""
    found: dict[str, list[int]] = {}
    for finding in findings:
        for frame in finding.frames:
            found.setdefault(frame.path, []).append(frame.line)
    return found


def _target(name: str, path: str, sources: Mapping[str, str], resolver: Resolver) -> str:
    """The source that an import names, by its place or by an alias such as `@/cart`; empty for a package."""
    if name.startswith("."):
        return next(iter(resolver.targets(path, name, ())), "")
    head, _, inner = name.partition("/")
    if not inner or (head.startswith("@") and len(head) > 1 and "/" not in inner):
        return ""
    endings = ("", *ENDINGS, *(f"/index{end}" for end in ENDINGS))
    found = [one for one in sources if any(f"/{one}".endswith(f"/{inner}{end}") for end in endings)]
    return min(found, key=len) if found else ""
