"""Why something was not mended, and what a person can do about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pawl.checks.project_facts import dependencies
from pawl.code.languages import is_test
from pawl.core.diagnostic import CheckResult, Diagnostic, Location
from pawl.repair.ground import PythonGround, is_uncollected
from pawl.repair.model import Agreement, RepairEnded, RepairStatus
from pawl.repair.recoveries.names import is_packages, meant_module, package_of, plugin_of
from pawl.repair.recoveries.source import Symbols
from pawl.repair.recovery_map import SAY, beyond

WHY_NOT = {
    RepairStatus.NO_PATCH: "no patch of the search space makes the tests pass",
    RepairStatus.REPAIRED: "a patch was found for these tests alone, but with it the whole suite does not get better",
    RepairStatus.OUT_OF_TIME: "the time was up before a patch was found",
    RepairStatus.NO_SOURCES: "the failing tests reach no source that may be edited",
    RepairStatus.NOTHING_TO_EDIT: "the failing tests reach no source that may be edited",
    RepairStatus.SUITE_DIED: "the suite ended the interpreter it ran in",
    RepairStatus.NOT_COLLECTED: "the tests could not be collected",
    RepairStatus.NO_TESTS: "the framework found no tests",
    RepairStatus.FLAKY_ONLY: "the failing tests fail only sometimes, so no patch could be judged",
    RepairStatus.NOTHING_FAILS: "the failing tests pass when they are run again, so no patch could be judged",
}
_LOCKED = {"uv.lock": "uv add", "poetry.lock": "poetry add", "pdm.lock": "pdm add", "Pipfile.lock": "pipenv install"}
_SYNCED = {"uv.lock": "uv sync", "poetry.lock": "poetry install", "pdm.lock": "pdm sync", "Pipfile.lock": "pipenv sync"}
_MOST_NAMED = 3
_ROOM = 10
"""A search should have so many times as long as the suite takes."""


def why_not(ended: RepairEnded) -> str:
    return WHY_NOT.get(ended.status, f"the engine failed: {ended.error or ended.status}")


def why_disputed(ended: RepairEnded) -> str:
    patches = f"{len(ended.patches)} patches"
    behaviours = len({patch.group for patch in ended.patches})
    if ended.agreement is Agreement.DISPUTED and behaviours < 2:
        return f"{patches} pass the tests; {ended.reason}"
    if ended.agreement is Agreement.DISPUTED:
        return f"{patches} pass the tests, with {behaviours} behaviours, and nothing decides between them"
    return ended.doubt


def uncompiled(findings: Iterable[Diagnostic]) -> tuple[str, str]:
    """Which sources do not compile although the tests pass, and what to do; empty when all do."""
    told = "; ".join(f"{one.path}:{one.line} does not compile: {_first(one)}" for one in findings)
    return (told, "mend that line and run this again") if told else ("", "")


def uncollected(findings: Iterable[Diagnostic]) -> tuple[str, str]:
    """Which test files cannot be loaded, by which error and where, and what to do; empty when all can."""
    told: dict[str, None] = {}
    advice = "mend that line and run this again"
    for finding in filter(is_uncollected, findings):
        place = finding.frames[-1] if finding.frames else Location(path=finding.path, line=finding.line)
        where = f" at {place.path}:{place.line}" if place.path else ""
        told[f"{finding.test} cannot be loaded: {_first(finding)}{where}"] = None
        if place.path and is_test(place.path):
            advice = f"Pawl edits no tests: mend {place.path}:{place.line} and run this again"
    if not told:
        return "", ""
    more = f", and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return "; ".join(list(told)[:_MOST_NAMED]) + more, advice


def needs(ground: PythonGround, findings: Iterable[Diagnostic], symbols: Symbols) -> tuple[str, str]:
    """Needs of the tests that no patch can meet, and how to meet them; empty where it is the code."""
    reasons: dict[str, None] = {}
    advice: dict[str, None] = {}
    for finding in findings:
        found = beyond(finding, ground.recoveries)
        if found is None:
            continue
        entry, groups = found
        if "module" in groups and entry.recovery != SAY:
            reason, what = _module(ground, groups, symbols)
        elif plugin_of(groups.get("fixture", "")):
            plugin = plugin_of(groups["fixture"])
            reason = (
                f"the tests need the package {plugin!r}, which is not installed (for the fixture {groups['fixture']!r})"
            )
            what = _installed_by(ground, plugin)
        else:
            told = entry.advice.format(**groups)
            reason, what = f"what the tests need around the code is missing: {_first(finding)}", told
        reasons[reason] = advice[what] = None
    return "; ".join(reasons), "; ".join(advice)


def _first(finding: Diagnostic) -> str:
    return finding.message.strip().splitlines()[0]


def _module(ground: PythonGround, groups: Mapping[str, str], symbols: Symbols) -> tuple[str, str]:
    module = groups["module"]
    root = module.partition(".")[0]
    if root in symbols.modules:
        return (
            f"the module {module!r} of this project is not on the import path",
            "install the project into its environment, or set `pythonpath` in [tool.pytest.ini_options]",
        )
    if not is_packages(module, dependencies(ground.bench.files)):
        # A name that nothing confirms may be anybody's package.
        advice = "correct the name, or add the package that has it to the project's dependencies"
        return f"there is no module {module!r}, and no dependency of the project has it{meant_module(module)}", advice
    package = package_of(module)
    return f"the tests need the package {package!r}, which is not installed", _installed_by(ground, package)


def _installed_by(ground: PythonGround, package: str) -> str:
    files = ground.bench.files
    python = ground.subject.python.removeprefix(f"{ground.shop.workspace}/")
    locks = [name for name in _LOCKED if files.exists(name)]
    declared = package.lower() in dependencies(files)
    if locks:
        how = _SYNCED[locks[0]] if declared else f"{_LOCKED[locks[0]]} {package}"
    elif declared and files.exists("requirements.txt"):
        how = f"{python} -m pip install -r requirements.txt"
    else:
        how = f"{python} -m pip install {package}"
    return f"install it with: {how}"


def too_slow(ground: PythonGround, first: CheckResult) -> tuple[str, str]:
    """Whether the suite leaves no time for a search, and what would; empty when it does."""
    if first.seconds < ground.request.seconds:
        return "", ""
    return (
        f"the suite takes {first.seconds:.0f} s, more than the {ground.request.seconds:g} s of the search",
        more_time(ground, first),
    )


def more_time(ground: PythonGround, first: CheckResult) -> str:
    """Room for several runs of the suite, and more than was given."""
    seconds = math.ceil(max(first.seconds * _ROOM, ground.request.seconds * 2) / 10) * 10
    # unittest names modules instead of files.
    files = sorted(
        {one.test.partition("::")[0] for one in first.findings if "::" in one.test and ground.aim.wants(one)}
    )
    part = f"pytest {' '.join(files[:3])}" if files else "CMD"
    return f"give it more time, such as --seconds {seconds}, or run a part of the tests with --test '{part}'"


def unsteady(found: Mapping[str, str]) -> str:
    """Advice about tests that do not always end the same way."""
    words = set(found.values())
    parts = []
    if "flaky" in words:
        parts.append("a test that fails only sometimes cannot judge a patch: take chance and time out of it")
    if "order-dependent" in words:
        parts.append("a test that fails only after others shares state with them: reset that state before each test")
    return "; ".join(parts)
