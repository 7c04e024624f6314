"""Recoveries for TypeScript and JavaScript that are text edits at the place a finding names."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator

from pawl.code.languages import is_test
from pawl.repair.recoveries.source import PythonSource, RecoveryCandidate, RecoverySituation, close

ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_EXPORT = (
    r"^export\s+(?:declare\s+)?(?:async\s+)?"
    r"(?:function\*?|const|let|var|class|interface|type|enum|abstract class)\s+{name}\b"
)
_LISTED = r"^export\s*\{{[^}}]*\b{name}\b(?!\s+as\b)[^}}]*\}}"
_PASSED_ON = (
    r"^export\s*\{{[^}}]*\b{name}\b[^}}]*\}}\s*from\b"
    r"|\brequire\([^)]*\)\.{name}\b|\b{name}\b[^}}=]*\}}\s*=\s*require\("
)
_COMMON = r"(?:^(?:module\.)?exports\.{name}\s*=|^module\.exports\s*=\s*\{{[^}}]*\b{name}\b)"
_IMPORTS = re.compile(r"^(?:import\b.*|(?:const|let|var)\s+.*=\s*require\(.*)$", re.MULTILINE)
_IN_IMPORT = re.compile(r"^import\b[^;'\"]*\{[^}]*$", re.MULTILINE)
_NO_CODE = r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`"
_FUNCTION = re.compile(
    r"(?P<word>\bfunction\b)"
    r"|(?P<arrow>(?:\([^()]*\)|\b[\w$]+)\s*(?::\s*[^=;{]+?)?\s*=>)"
    r"|(?P<method>^[ \t]*(?:public |private |static |protected )*)(?P<name>[\w$]+)\s*\([^()]*\)\s*(?::[^{;]+)?\{",
    re.MULTILINE,
)
_KEYWORDS = frozenset({"if", "for", "while", "switch", "catch", "return", "else", "do", "with", "constructor"})
_INSTEAD = {",": ")]}", ";": ")}", ":": "?"}
"""Tokens that may be missing where the compiler would go on with another one."""
_CLOSES = frozenset({")", "]", "}", ";", ",", ">"})


def _at(source: PythonSource, situation: RecoverySituation) -> int:
    finding = situation.finding
    return source.offset(finding.line, max(finding.column - 1, 0))


def rename_suggested(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The name that the compiler thinks was meant."""
    source = situation.source
    name, meant = situation.groups["name"], situation.groups["meant"]
    start = _at(source, situation)
    if not source.text.startswith(name, start):
        found = [match.start() for match in re.finditer(rf"\b{re.escape(name)}\b", source.line(situation.finding.line))]
        if not found:
            return
        start = source.offset(situation.finding.line) + found[0]
    starts = [start]
    if _IN_IMPORT.search(source.text[:start]) and not re.match(r"\s+as\b", source.text[start + len(name) :]):
        starts = _uses(source.text, name)
    edits = tuple(source.edit(one, one + len(name), meant) for one in starts)
    yield RecoveryCandidate(why=f"{name} is not there, but {meant} is", edits=edits)


def _uses(text: str, name: str) -> list[int]:
    """Where a name stands, but not as a property, in a string or in a comment."""
    found = re.finditer(rf"{_NO_CODE}|(?<![\w$.])(?P<name>{re.escape(name)})(?![\w$])", text, re.DOTALL)
    return [match.start() for match in found if match["name"]]


def import_from_project(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """An import of the name from a file of the project that exports it; then names of the file that look like it."""
    source = situation.source
    name = situation.groups["name"]
    for path in sorted(situation.sources, key=lambda one: (one.count("/"), one)):
        declares = path.endswith(".d.ts") or is_test(path)
        if path != source.path and path.endswith(ENDINGS) and not declares:
            line = _import_line(source, path, situation.sources[path], name)
            if line:
                start = _import_place(source)
                own = not re.search(_PASSED_ON.format(name=re.escape(name)), situation.sources[path], re.MULTILINE)
                edits = (source.edit(start, start, line),)
                yield RecoveryCandidate(why=f"{path} exports {name}", edits=edits, is_choice=own)
    words = set(re.findall(r"[A-Za-z_$][\w$]*", source.text)) - {name}
    for other in close(name, sorted(words)):
        yield from rename_suggested(dataclasses.replace(situation, groups={**situation.groups, "meant": other}))


def _import_line(source: PythonSource, path: str, text: str, name: str) -> str:
    """The line that imports the name, written as the file writes its imports; empty where nothing is exported."""
    escaped = re.escape(name)
    if any(re.search(form.format(name=escaped), text, re.MULTILINE) for form in (_EXPORT, _LISTED)):
        return f'import {{ {name} }} from "{_relative(source, path)}";\n'.replace('"', _quote(source))
    if re.search(_COMMON.format(name=escaped), text, re.MULTILINE):
        return f'const {{ {name} }} = require("{_relative(source, path)}");\n'.replace('"', _quote(source))
    return ""


def _quote(source: PythonSource) -> str:
    return "'" if source.text.count("from '") + source.text.count("require('") > source.text.count('"') else '"'


def _relative(source: PythonSource, path: str) -> str:
    relative = posixpath.relpath(path, posixpath.dirname(source.path) or ".")
    shown = relative if relative.startswith(".") else f"./{relative}"
    with_ending = re.search(r"""from ['"]\.[^'"]*\.(?:js|mjs|ts)['"]""", source.text)
    if source.path.endswith((".mjs", ".js")) and not re.search(r"\brequire\(", source.text):
        return shown
    stem = re.sub(r"\.[cm]?[jt]sx?$", "", shown)
    return f"{stem}.js" if with_ending else stem


def _import_place(source: PythonSource) -> int:
    """After the last import, or at the top after a hash-bang line."""
    found = list(_IMPORTS.finditer(source.text))
    if not found:
        return source.offset(2) if source.text.startswith("#!") else 0
    end = source.text.find("\n", found[-1].end())
    return len(source.text) if end < 0 else end + 1


def relative_module(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A file of the project whose path looks like the one that is not there."""
    source = situation.source
    module = situation.groups["module"]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), module))
    known = {re.sub(r"(?:/index)?\.(?:d\.)?[cm]?[jt]sx?$", "", path): path for path in situation.sources}
    stem = re.sub(r"\.[cm]?[jt]sx?$", "", wanted)
    same = [one for one in known if posixpath.basename(one) == posixpath.basename(stem) and one != stem]
    for found in dict.fromkeys((*same, *close(stem, sorted(known)))):
        relative = posixpath.relpath(found, posixpath.dirname(source.path) or ".")
        shown = relative if relative.startswith(".") else f"./{relative}"
        ending = posixpath.splitext(module)[1] if re.search(r"\.[cm]?[jt]sx?$", module) else ""
        position = source.text.find(module)
        if position >= 0 and shown + ending != module:
            why = f"there is no {module}, but {known[found]}"
            yield source.exchanged(position, position + len(module), shown + ending, why)


def type_arguments(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """As many type arguments as the type needs, of the type that asks nothing of anyone."""
    source = situation.source
    name, count = situation.groups["name"], int(situation.groups["count"])
    end = _at(source, situation) + len(name)
    if source.text[end - len(name) : end] == name:
        arguments = f"<{', '.join(['unknown'] * count)}>"
        yield source.inserted(end, arguments, f"{name} needs {count} type arguments")


def insert_expected(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The token that the compiler misses, or a bracket that it may have missed earlier: there, or before the gap."""
    source = situation.source
    token = situation.groups["token"]
    position = _at(source, situation)
    before = len(source.text[:position].rstrip())
    places = (before, position) if token in _CLOSES else (position, before)
    for one in (token, *_INSTEAD.get(token, "")):
        for place in dict.fromkeys(places):
            yield source.inserted(place, one, f"{one!r} is missing")


def make_async(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The innermost function around the place becomes asynchronous."""
    source = situation.source
    position = _at(source, situation)
    for match in reversed([one for one in _FUNCTION.finditer(source.text) if one.start() < position]):
        if match["method"] is not None and match["name"] in _KEYWORDS:
            continue
        start = match.start("name") if match["method"] is not None else match.start()
        if not source.text[:start].rstrip().endswith("async") and not match[0].lstrip().startswith("async"):
            yield source.inserted(start, "async ", "await needs an asynchronous function")
            return
