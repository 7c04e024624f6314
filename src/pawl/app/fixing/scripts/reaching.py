"""Which test files fail, and which sources they reach: by stacks, and by what files import from each other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from pawl.app.fixing.scripts.ground import is_script_test
from pawl.core.finding import Finding
from pawl.verify.recoveries.scripts import ENDINGS

_IMPORTED = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*['"]([^'"\n]+)['"]""")


def failing_files(findings: Iterable[Finding], sources: Mapping[str, str]) -> tuple[str, ...]:
    """The test files of failing tests; every test file where one cannot be told."""
    found: dict[str, None] = {}
    for finding in findings:
        places = (finding.test.split(" > ")[0], finding.path, *(frame.path for frame in finding.frames))
        file = next((path for path in places if path in sources and is_script_test(path)), "")
        if not file:
            return tuple(path for path in sources if is_script_test(path))
        found[file] = None
    return tuple(found)


def reached(tests: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """What the tests import, directly or not, the nearest first."""
    seen = dict.fromkeys(tests)
    waiting = list(tests)
    while waiting:
        path = waiting.pop(0)
        for name in _IMPORTED.findall(sources.get(path, "")):
            target = _target(name, path, sources)
            if target and target not in seen:
                seen[target] = None
                waiting.append(target)
    return [path for path in seen if path not in tests]


def lines_of(findings: Iterable[Finding]) -> dict[str, list[int]]:
    """The lines that the stacks lead through, by file."""
    found: dict[str, list[int]] = {}
    for finding in findings:
        for frame in finding.frames:
            found.setdefault(frame.path, []).append(frame.line)
    return found


def _target(name: str, path: str, sources: Mapping[str, str]) -> str:
    """The source that an import names, by its place or by an alias such as `@/cart`; empty for a package."""
    if name.startswith("."):
        return _resolved(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)), sources)
    head, _, inner = name.partition("/")
    if not inner or (head.startswith("@") and len(head) > 1 and "/" not in inner):
        return ""
    endings = ("", *ENDINGS, *(f"/index{end}" for end in ENDINGS))
    found = [one for one in sources if any(f"/{one}".endswith(f"/{inner}{end}") for end in endings)]
    return min(found, key=len) if found else ""


def _resolved(path: str, sources: Mapping[str, str]) -> str:
    stem = posixpath.splitext(path)[0]
    tries = (path, *(f"{path}{end}" for end in ENDINGS), *(f"{path}/index{end}" for end in ENDINGS))
    # A TypeScript source imports another one by the name of what it is compiled to.
    return next((one for one in (*tries, *(f"{stem}{end}" for end in ENDINGS)) if one in sources), "")
