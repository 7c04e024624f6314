"""Recoveries that are edits of a text at the place a finding names.

For Python that does not parse: indentation, colons, brackets, quotes, habits of other languages. For TypeScript and
JavaScript: names, imports, tokens.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterator

from pawl.code.languages import is_test
from pawl.repair.sources import PythonSource, RecoveryCandidate, RecoverySituation, close, table

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BLOCK = re.compile(
    r"^\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b[^#]*?(?P<end>)(?<!\s)\s*(?:#.*)?$"
)


def indent(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The line at each depth that the lines above it leave open."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    for depth in _depths(source, number):
        if depth + line.lstrip() != line:
            edit = source.replace_line(number, depth + line.lstrip())
            yield RecoveryCandidate(why=f"line {number} belongs at depth {len(depth)}", edits=(edit,))
    yield from _block_moved(source, number)


def _depths(source: PythonSource, number: int) -> list[str]:
    """The indentations of the lines above, the nearest first; one deeper below a line that opens a block."""
    depths: list[str] = []
    above = [source.line(n) for n in range(number - 1, 0, -1) if source.line(n).strip()]
    unit = next(
        (m[0] for n in range(1, len(source.lines) + 1) if (m := re.match(r"\t| {2,8}(?=\S)", source.line(n)))), "    "
    )
    if above and above[0].rstrip().endswith(":"):
        depths.append(_leading(above[0]) + unit)
    for line in above[:50]:
        depths.append(_leading(line))
    return list(dict.fromkeys([*depths, ""]))


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _block_moved(source: PythonSource, number: int) -> Iterator[RecoveryCandidate]:
    """The line and what follows at its depth or deeper, one step to the right or the left."""
    depth = len(source.indentation(number))
    last = number
    # At the left edge a blank line ends the block, else a line further left does.
    for following in range(number + 1, len(source.lines) + 1):
        blank = not source.line(following).strip()
        if blank if depth == 0 else not blank and len(source.indentation(following)) < depth:
            break
        last = following
    lines = [source.line(n) for n in range(number, last + 1)]
    wanted = _depths(source, number)[0]
    moved = [wanted + line[depth:] if line.strip() else line for line in lines]
    if moved != lines and len(lines) > 1:
        start, end = source.offset(number), source.offset(last) + len(source.line(last))
        edit = source.edit(start, end, "\n".join(moved))
        yield RecoveryCandidate(why=f"lines {number} to {last} belong at depth {len(wanted)}", edits=(edit,))


def expand_tabs(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Spaces for tabs in the indentation of the whole file, as wide as the file's own steps or as a tab counts."""
    source = situation.source
    for width in (4, 8, 2):
        edits = []
        for number in range(1, len(source.lines) + 1):
            leading = source.indentation(number)
            if "\t" in leading:
                start = source.offset(number)
                edits.append(source.edit(start, start + len(leading), leading.replace("\t", " " * width)))
        if edits:
            yield RecoveryCandidate(why=f"{width} spaces for each tab", edits=tuple(edits))


def add_colon(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A colon at the end of a line that opens a block."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    if re.match(r"\s*else\s+if\b", line):
        edit = source.replace_line(number, re.sub(r"else\s+if\b", "elif", line, count=1))
        yield RecoveryCandidate(why="`else if` is written `elif`", edits=(edit,))
    if _BLOCK.match(line):
        position = source.offset(number, len(re.sub(r"\s*(?:#.*)?$", "", line)))
        yield source.inserted(position, ":", "a block starts with a colon")


def balance_brackets(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A bracket closed, dropped or turned into the one that fits."""
    source = situation.source
    number, column = situation.finding.line, situation.finding.column
    groups = situation.groups
    if groups.get("opened"):
        yield from _closed(source, number, _PAIRS[groups["opened"]])
    wrong = groups.get("extra") or groups.get("closed", "")
    line = source.line(number)
    at = column - 1 if 0 < column <= len(line) and line[column - 1] == wrong else line.rfind(wrong) if wrong else -1
    if at >= 0:
        start = source.offset(number, at)
        if groups.get("open"):
            right = _PAIRS[groups["open"]]
            yield source.exchanged(start, start + 1, right, f"{right} closes {groups['open']}")
        yield source.exchanged(start, start + 1, "", f"{wrong} closes nothing")


def _closed(source: PythonSource, number: int, bracket: str) -> Iterator[RecoveryCandidate]:
    """The bracket at the end of the line that opened it, before a colon or an arrow, and at the ends of the next."""
    for candidate in range(number, min(number + 8, len(source.lines) + 1)):
        line = re.sub(r"(?<!\s)\s*(?:#.*)?$", "", source.line(candidate))
        ends = [len(line)] + ([len(line) - 1] if line.endswith((":", ",")) else [])
        ends += [match.start() for match in re.finditer(r"\s*->", line)]
        for end in reversed(ends):
            yield source.inserted(source.offset(candidate, end), bracket, f"{bracket} closes the bracket")


def close_string(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The missing quote at the end of the line, also before what usually follows a string."""
    source = situation.source
    if situation.groups.get("triple"):
        return
    number = situation.finding.line
    line = source.line(number)
    quotes = [quote for quote in ("'", '"') if line.count(quote) % 2]
    tail = re.search(r"(?<![\s)\]},:])[\s)\]},:]*$", line)
    ends = [tail.start() if tail else len(line), len(line)]
    for quote in quotes:
        for end in dict.fromkeys(ends):
            yield source.inserted(source.offset(number, end), quote, f"{quote} ends the string")


def compare(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`==` for a single `=` in a condition."""
    source = situation.source
    number = situation.finding.line
    for match in re.finditer(r"(?<![=!<>:+\-*/%&|^@])=(?!=)", source.line(number)):
        position = source.offset(number, match.start())
        yield source.exchanged(position, position + 1, "==", "a comparison is written ==")


def add_comma(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A comma between two values, on the finding's line or at the end of the one above."""
    source = situation.source
    number = situation.finding.line
    for candidate in (number, number - 1, number + 1):
        line = source.line(candidate)
        gaps = [match.start() for match in re.finditer(r"(?<=[\w)\]}'\"])\s+(?=[\w(\[{'\"])", line)]
        for at in [*gaps, len(line.rstrip())]:
            yield source.inserted(source.offset(candidate, at), ",", "a comma between the values")


def call_with_parentheses(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`print x` as a call."""
    source = situation.source
    number, name = situation.finding.line, situation.groups["function"]
    match = re.match(rf"(\s*(?:.*[:;]\s*)?){name}\s+(.+?)\s*(#.*)?$", source.line(number))
    if match:
        comment = f"  {match[3]}" if match[3] else ""
        edit = source.replace_line(number, f"{match[1]}{name}({match[2]}){comment}")
        yield RecoveryCandidate(why=f"{name} is a function", edits=(edit,))


def parenthesize_exceptions(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`except A, b:` as one exception under a name, or as several."""
    source = situation.source
    number = situation.finding.line
    match = re.match(r"(\s*except\s+)([\w.]+)\s*,\s*([\w.]+)(\s*:.*)$", source.line(number))
    if match is None:
        return
    several = f"{match[1]}({match[2]}, {match[3]}){match[4]}"
    one = f"{match[1]}{match[2]} as {match[3]}{match[4]}"
    ordered = [several, one] if match[3][0].isupper() else [one, several]
    for line in ordered:
        yield RecoveryCandidate(why=f"`{line.strip()}`", edits=(source.replace_line(number, line),))


def plain_characters(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Typographic quotes, dashes and blanks as the characters that they stand for."""
    source = situation.source
    edits = []
    number = situation.finding.line
    plain = table("habits")["characters"]
    for at, character in enumerate(source.line(number)):
        if character in plain:
            start = source.offset(number, at)
            edits.append(source.edit(start, start + 1, plain[character]))
    if edits:
        yield RecoveryCandidate(why="plain characters for typographic ones", edits=tuple(edits))


def other_languages(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Habits of other languages, then everything that a missing character could be."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    for habit in table("habits")["lines"]:
        changed = re.sub(r"(?<=\S)  +", " ", re.sub(habit["pattern"], habit["new"], line.lstrip()))
        if changed != line.lstrip():
            edit = source.replace_line(number, source.indentation(number) + changed)
            yield RecoveryCandidate(why=habit["why"], edits=(edit,))
    attempts: tuple[Callable[[RecoverySituation], Iterator[RecoveryCandidate]], ...] = (add_colon, compare, add_comma)
    for attempt in attempts:
        yield from attempt(situation)
    for bracket in _PAIRS.values():
        yield from _closed(source, max(number - 1, 1), bracket)


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
