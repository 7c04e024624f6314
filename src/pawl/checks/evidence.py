"""The evidence that a change itself carries: which of its files are tests, text, or what decides about tests."""

from __future__ import annotations

import configparser
import functools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pawl.checks.disguise import disguises
from pawl.checks.leaned_on import changed_checks, changed_definitions, leaned_on
from pawl.checks.project_facts import Folder, is_named, text
from pawl.checks.special_cases import literals_of, special_cases
from pawl.checks.test_strength import (
    changed_examples,
    has_fewer_types,
    is_made_of_tests,
    is_same_code,
    tests_in,
    weakened,
)
from pawl.code.languages import is_test
from pawl.core.change import BlobReader, Change, ChangeSet, Node, is_directory
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, data_table, read_json, read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    text: Sequence[str]
    read: Sequence[str]
    tests: Mapping[str, Any]
    checks: Mapping[str, Any]
    reaching: Sequence[Mapping[str, Any]]


@functools.cache
def _table() -> _Table:
    return _Table(**data_table("pawl.checks", "evidence.toml"))


def is_text_only(changes: ChangeSet) -> bool:
    """Whether nothing but text that no check reads is changed."""
    return all(
        is_prose(one.path) and not decides_tests(one, None)
        for one in changes
        if not (is_directory(one.before) or is_directory(one.after))
    )


def is_prose(path: str) -> bool:
    """Whether it is text that no check reads."""
    table = _table()
    return is_named(path, table.text) and not is_named(path, table.read)


def is_inert(changes: ChangeSet, blobs: BlobReader) -> bool:
    """Whether nothing that runs is changed: comments and blank lines of Python, and text."""
    return bool(changes) and all(
        is_text_only(ChangeSet.of([one]))
        or (one.path.endswith(".py") and is_same_code(text_of(one.before, blobs), text_of(one.after, blobs)))
        for one in changes
    )


def of_tests(changes: ChangeSet, blobs: BlobReader, ran: Iterable[str] = ()) -> frozenset[str]:
    """The paths of the change set that belong to the tests: what they are, what they expect, how they run.

    `ran` are the ids of tests that ran without it: their files are tests, whatever their names are.
    """
    files = {test.partition("::")[0] for test in ran if "::" in test}
    return frozenset(
        one.path
        for one in changes
        if decides_tests(one, blobs) or (one.path in files and is_made_of_tests(one.path, text_of(one.before, blobs)))
    )


_WORD = re.compile(r"[^\W\d]\w*|\d+|\s+|[^\w\s]")
_DEFINED = re.compile(r"\b(?:def|class|func|function|fn|const|let|var|type|interface|struct|enum)\s+([^\W\d]\w*)")


def renamed_in(changes: ChangeSet, tests: Iterable[str], blobs: BlobReader) -> frozenset[str]:
    """The files of tests in which only names changed that the product gives up for new ones: they expect the same."""
    rest = [one for one in changes.without(tests) if not is_test(one.path)]
    before, after = (
        _defined(text_of(getattr(one, side), blobs) for one in rest)
        | {PurePosixPath(one.path).stem for one in rest if getattr(one, side) is not None}
        for side in ("before", "after")
    )
    given_up, new = before - after, after - before
    return frozenset(
        one.path
        for one in changes.only(tests)
        if (pairs := _renamed(text_of(one.before, blobs), text_of(one.after, blobs)))
        and given_up.issuperset(pairs)
        and new.issuperset(pairs.values())
    )


def _defined(texts: Iterable[str | None]) -> set[str]:
    return {name for text in texts for name in _DEFINED.findall(text or "")}


def _renamed(before: str | None, after: str | None) -> dict[str, str]:
    """The names that have others in the second text, each everywhere; none where it differs in anything else."""
    words, others = _WORD.findall(before or ""), _WORD.findall(after or "")
    pairs = {one: other for one, other in zip(words, others, strict=False) if one != other}
    known = set(words)
    one_to_one = len(set(pairs.values())) == len(pairs) and known.isdisjoint(pairs.values())
    return pairs if one_to_one and [pairs.get(word, word) for word in words] == others else {}


def data_of_tests(changes: ChangeSet, blobs: BlobReader, files: Folder) -> frozenset[str]:
    """The changed files of data, and modules of it, that tests name and the product, as it was, does not."""
    table = _table().tests
    kinds, known = (*table["data"], *table["modules"]), (*table["parts"], *_table().read)
    data = [PurePosixPath(one.path) for one in changes if one.before is not None and is_named(one.path, kinds)]
    coded = {"", *(path.split("/")[-2] for path in files.walk() if data and "/" in path and path.endswith(_CODE))}
    names = dict[str, re.Pattern[str]]()
    for one in (one for one in data if not is_named(str(one), known)):
        # Tests may go through a folder that holds no code.
        folder = rf"[\"'/]{re.escape(one.parent.name)}[\"'/]" if one.parent.name not in coded else "(?!)"
        names[str(one)] = re.compile(f"{re.escape(one.stem if one.suffix in _CODE else one.name)}|{folder}")
    by_tests, by_product = set[str](), set[str]()
    for path in files.walk() if names else ():
        if path.endswith(_CODE):
            change = changes.get(path)
            code = text(files, path) if change is None else text_of(change.before, blobs) or ""
            side = by_tests if is_test(path) else by_product
            side.update(each for each, name in names.items() if name.search(code))
    return frozenset(by_tests - by_product)


def edited_tests(changes: ChangeSet, blobs: BlobReader, ran: Iterable[str]) -> tuple[str, ...]:
    """The ids of tests in files of the product, such as examples in docstrings, that expect something else."""
    ids = [test for test in ran if test.partition("::")[0].endswith(".py")]
    return tuple(
        test
        for one in changes
        for test in changed_examples(one.path, text_of(one.before, blobs), text_of(one.after, blobs), ids)
    )


def decides_tests(change: Change, blobs: BlobReader | None) -> bool:
    """Whether the changed file is a test, or something that decides about tests."""
    path, table = change.path, _table().tests
    if is_test(path) or is_named(path, table["files"]):
        return True
    if not set(table["folders"]).isdisjoint(PurePosixPath(path).parts[:-1]):
        return True
    row = next((one for one in table["content"] if is_named(path, one["files"])), None)
    if blobs is not None and row is not None:
        return re.search(row["pattern"], text_of(change.before, blobs) or "", re.MULTILINE) is not None
    return blobs is not None and _changes_part(change, blobs, table["parts"])


def _changes_part(change: Change, blobs: BlobReader, parts: Mapping[str, Sequence[str]]) -> bool:
    """Whether it changes a part of a project file, of those that the table names."""
    keys = parts.get(PurePosixPath(change.path).name, ())
    before, after = (_part(change.path, text_of(node, blobs), keys) for node in (change.before, change.after))
    return bool(keys) and before != after


def silencing(changes: ChangeSet, blobs: BlobReader, *, types: bool = False) -> frozenset[str]:
    """The paths that decide about types, lint and builds, or silence them by a comment that was not there.

    Those of `types` are also silenced by code that has none.
    """
    table = _table().checks
    silences = re.compile(f"{table['silences']}|{table['untyped']}" if types else table["silences"])

    def silent(change: Change) -> bool:
        before, after = (text_of(node, blobs) or "" for node in (change.before, change.after))
        more = len(silences.findall(after)) > len(silences.findall(before))
        return more or (types and change.path.endswith(".py") and has_fewer_types(before, after))

    return frozenset(
        one.path
        for one in changes
        if is_named(one.path, table["files"])
        or _changes_part(one, blobs, table["parts"])
        or (one.path.endswith(_CODE) and silent(one))
        or (types and one.path.endswith(".pyi") and one.before is None)
        or (types and one.path.endswith((".ts", ".tsx", ".mts")) and one.after is None)
    )


def is_of_types(check: str) -> bool:
    """Whether a step of the ladder, or a command, checks types."""
    words = check.split()
    return words[:1] in (["types"], ["diagnostics"], ["build"]) or any(
        is_named(one, _table().checks["typing"]) for one in words
    )


def _part(path: str, text: str | None, keys: Sequence[str]) -> list[object]:
    """The part of a project file that is about tests; empty for one that cannot be read."""
    reader = {"toml": read_toml, "json": read_json}.get(path.rpartition(".")[2], _read_sections)
    try:
        whole: object = reader(text or "")
    except Unreadable:
        return []
    return [*(_value(whole, key) for key in keys), _reached(_value(whole, "scripts"))]


def _reached(scripts: object) -> dict[str, str]:
    """The scripts of a package that `npm test` runs, those that it calls by name with them."""
    found: dict[str, str] = {}
    left = ["test"]
    while isinstance(scripts, dict) and left:
        name = left.pop()
        for one in (name, f"pre{name}", f"post{name}"):
            if isinstance(scripts.get(one), str) and one not in found:
                found[one] = scripts[one]
                left += [word for word in re.split(r"[\s\"'&|;()]+", found[one]) if word in scripts]
    return found


def _value(whole: object, key: str) -> object:
    for word in key.split("."):
        whole = whole.get(word) if isinstance(whole, dict) else None
    return whole


def _read_sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Unreadable(str(error)) from error
    return {name: dict(parser[name]) for name in parser.sections()}


def text_of(node: Node | None, blobs: BlobReader) -> str | None:
    return None if node is None or node.blob is None else blobs.get(node.blob).decode("utf-8", "replace")


def weaker_tests(changes: ChangeSet, blobs: BlobReader, ran: Iterable[str] = ()) -> tuple[str, ...]:
    """Every way in which the change set makes the tests test less, as one line each; those that ran may have moved."""
    files = [one for one in changes if not (is_directory(one.before) or is_directory(one.after))]
    sides = [(one.path, text_of(one.before, blobs), text_of(one.after, blobs)) for one in files]
    ids = [test.partition("[")[0] for test in ran]
    moved = {
        name: count
        for path, before, after in sides
        for name, count in tests_in(path, after).items() - tests_in(path, before).items()
        if any(test.startswith((path, path[:-3].replace("/", "."))) and test.endswith(name.strip("'")) for test in ids)
    }
    return tuple(line for path, before, after in sides for line in weakened(path, before, after, moved))


def adds_tests_only(changes: ChangeSet) -> bool:
    """Whether nothing but new files of tests is there, which leave those that stood there as they are."""
    return all(
        one.before is None
        and is_test(one.path)
        and one.path.endswith(_CODE)
        and not is_named(one.path, _table().tests["files"])
        for one in changes
        if not is_directory(one.after)
    )


def script_of(words: Sequence[str], request: str = "") -> str:
    """The file that a command runs, by itself or by an interpreter; empty where it is none, or the request, which has
    the command, is about that file."""
    table = _table().tests
    if not words or not is_named(words[0], table["interpreters"]):
        script = words[0] if words and "/" in words[0] else ""
    else:
        inline, rest = re.match(table["inline"], " ".join(words)), (one for one in words[1:] if not one.startswith("-"))
        script = "" if inline else next(rest, "")
    return "" if request.count(script) > 1 else script


def deciding_files(
    changes: ChangeSet, commands: Iterable[Sequence[str]], scripts: Iterable[str] = (), words: str = ""
) -> tuple[str, ...]:
    """A line for each changed file of a command of the user's, or a script of the project's, which decides, and for
    each by which code is turned into what tests run: unless these words name it."""
    table, found = _table().tests, dict[str, str]()
    for path in sorted(changes.paths):
        if is_named(path, table["transforms"]) and PurePosixPath(path).name not in words:
            found[path] = f"{path} transforms code and tests before they run, and was changed"
    for command in commands:
        names = {word.removeprefix("./") for part in command for word in part.split()}
        read = table["programs"].get(command[0] if command else "", ())
        for path in sorted(changes.paths):
            if path in read or (path in names and is_named(path, table["named"]) and not is_test(path)):
                found[path] = f"{path} belongs to the command that decides ({' '.join(command)}) and was changed"
    for script in scripts:
        for path in sorted(changes.paths & {word.removeprefix("./") for word in re.split(r"[\s;&]+", script)}):
            found.setdefault(path, f"{path} belongs to the command that decides ({script}) and was changed")
    return tuple(found.values())


_CODE = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".go", ".rs", ".rb")


def reaching_for_tests(
    changes: ChangeSet, blobs: BlobReader, words: str = "", *, exits: bool = False
) -> tuple[str, ...]:
    """A line for each way in which code of the product newly reaches for what tests it, and for each function of it
    with which they check: unless these words name it. `exits`: no runner is watched, an exit code counts."""
    found = []
    for change in changes:
        after = text_of(change.after, blobs)
        if after is None or is_directory(change.after):
            continue
        before = text_of(change.before, blobs) or ""
        if before and _changes_part(change, blobs, _table().tests["leading"]) and change.path not in words:
            found.append(f"{change.path} decides where imports lead, and was changed")
        names = changed_checks(change.path, before, after)
        found += [f"{change.path}: {one} is used by the tests, and was changed" for one in names if one not in words]
        found += [f"{change.path}:{line} {what}" for line, what in disguises(change.path, before, after)]
        for files, pattern, what in _reaching(exits=exits):
            places = [match.start() for match in pattern.finditer(after)] if is_named(change.path, files) else []
            if len(places) > len(pattern.findall(before)):
                line = after.count("\n", 0, places[-1]) + 1
                found.append(f"{change.path}:{line} {what}")
    return tuple(found)


def taken_away(changes: ChangeSet, blobs: BlobReader, words: str) -> Iterator[str]:
    """A line for each definition that a change takes out of the product and puts nowhere else, and for each file: what
    was found there is gone with it, and not fixed. A new name of its kind renames it; words may ask for it."""
    table = _table().checks
    if re.search(table["removes"], words, re.IGNORECASE):
        return
    defines = re.compile(table["defines"], re.MULTILINE)

    def defined(path: str, node: Node | None) -> set[tuple[int | None, str]]:
        """The kind of each definition, and its name."""
        code = path.endswith(_CODE) and re.search(table["unbuilt"], path) is None
        matches = defines.finditer(text_of(node, blobs) or "") if code else ()
        return {(one.lastindex, one[one.lastindex or 0]) for one in matches}

    sides = [(one, defined(one.path, one.before), defined(one.path, one.after)) for one in changes]
    now = {name for _, _, after in sides for name in after}
    for one, before, after in sides:
        left = Counter(kind for kind, _ in before - now) - Counter(kind for kind, _ in after - before)
        gone = sorted(name for kind, name in before - now if kind in left)
        if gone or (one.after is None and one.path.endswith(_CODE) and not before):
            what = ": ".join(filter(None, (one.path, ", ".join(gone[:3]))))
            yield f"{what} was removed, and with it the findings in it"


def hollow_answers(changes: ChangeSet, blobs: BlobReader, mended: Iterable[str], files: Folder) -> tuple[str, ...]:
    """A line for each answer that a change writes down for an input of the tests that it mends, or brings along, and
    for each function or table of the product on which these lean and that it changes."""

    def stood(path: str) -> str:
        change = changes.get(path)
        return text(files, path) if change is None else text_of(change.before, blobs) or ""

    places = [(path, stood(path), name) for test in mended for path, name in _places(test, files)]
    asked = [one for place in places for one in literals_of(*place)]
    above = {str(one / "conftest.py") for path, _, _ in places for one in PurePosixPath(path).parents}
    places += [(one, stood(one), "") for one in sorted(above) if files.exists(one)]
    leaned = frozenset(one for place in places for one in leaned_on(*place))
    for one in changes:
        if is_test(one.path):
            asked += literals_of(one.path, text_of(one.after, blobs) or "")
    found = list[str]()
    for one in changes:
        if not is_test(one.path) and not is_directory(one.after):
            before, after = text_of(one.before, blobs), text_of(one.after, blobs)
            found += special_cases(one.path, before, after, asked) if asked else ()
            names = sorted(leaned & changed_definitions(one.path, before or "", after or "").keys()) if leaned else ()
            found += [f"{one.path}: {name} is used by the tests, and was changed" for name in names]
    return tuple(found)


def eased(changes: ChangeSet, then: Iterable[CheckResult], now: Iterable[CheckResult]) -> Iterator[str]:
    """A line for each changed file that decides when a run passes, where it fails as it was though no test does."""
    passing = {one.step for one in now if one.standing is Status.PASS}
    failed = (one for one in then if one.standing is Status.FAIL and one.step in passing)
    unnamed = any(not finding.test for one in failed for finding in one.findings)
    names = (*_table().tests["files"], *_table().tests["parts"]) if unnamed else ()
    yield from (f"{one} decides whether tests pass, and was changed" for one in changes.paths if is_named(one, names))


def settings_of_commands(
    changes: ChangeSet, commands: Iterable[str | Sequence[str]], files: Folder, words: str
) -> tuple[str, ...]:
    """A line for each changed file of settings, or of its own, that a script of a command reads; words may name it."""
    split = [shlex.split(one) if isinstance(one, str) else one for one in commands]
    scripts = {one: text(files, one) for command in split if (one := script_of(command))}
    return tuple(
        f"{path} belongs to the command that decides ({script} reads it) and was changed"
        for path in sorted(changes.paths)
        for script, code in scripts.items()
        if (name := PurePosixPath(path).name) not in words
        and (
            name in code
            if is_named(path, _table().tests["settings"])
            else re.search(_SOURCED.format(re.escape(name)), code, re.M)
        )
    )


_SOURCED = r"(?:^|[;&|{{(])\s*(?:\.|source)\s[^\n;&|]*{}\b"


def _places(test: str, files: Folder) -> list[tuple[str, str]]:
    """The files that may hold a test, with its own name there; unittest names modules, Go folders or nothing."""
    path, _, names = test.partition("[")[0].replace(" > ", "::").partition("::")
    last = (names or path).rpartition("::")[2]
    if re.match(r"(?:Test|Example|Fuzz)\w*(?:/|$)", last) and not path.endswith(_CODE):
        folder, name = path if names else "", last.partition("/")[0]
        return [(one, f"{name}(") for one in files.walk(folder) if one.endswith("_test.go")]
    if names:
        return [(path, last)]
    parts = path.split(".")
    modules = ("/".join(parts[:end]) + ".py" for end in range(len(parts) - 1, 0, -1))
    return [(next(filter(files.exists, modules), ""), parts[-1])]


@functools.cache
def _reaching(*, exits: bool) -> tuple[tuple[Sequence[str], re.Pattern[str], str], ...]:
    rows = (one for one in _table().reaching if exits or "unwatched" not in one)
    return tuple((row["files"], re.compile(row["pattern"], re.MULTILINE), row["what"]) for row in rows)
