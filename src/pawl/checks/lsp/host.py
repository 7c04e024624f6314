"""Runs the part of Pawl that talks to a language server on the bench, and reads its answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pawl.checks.lsp.client import LIMIT_SECONDS
from pawl.checks.lsp.servers import Server
from pawl.checks.steps import Subject, stopped
from pawl.core.formats import read_json

_GRACE_SECONDS = 4.0
"""What the process gets beyond the server's limit, to start and to say why it is skipped."""
# By the package's own folder, because the one around it may be out of sight.
_INSIDE = """
import importlib.util, sys
folder = sys.argv.pop(1)
found = importlib.util.spec_from_file_location("pawl", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["pawl"] = importlib.util.module_from_spec(found)
found.loader.exec_module(sys.modules["pawl"])
import importlib
importlib.import_module(sys.argv.pop(1)).main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What runs the inside part: an interpreter that can be started on the bench, and the folder of Pawl's package."""

    python: str
    package: str


def inside(host: Host, module: str, question: str) -> tuple[str, ...]:
    """The words that run a module of Pawl's on the bench."""
    return (host.python, "-I", "-S", "-B", "-c", _INSIDE, host.package, module, question)


def answered(
    subject: Subject, host: Host, chosen: Server, question: Mapping[str, Any], seconds: float = LIMIT_SECONDS
) -> dict[str, Any]:
    """The answer of a process on the bench that starts the server and ends with it."""
    programs = subject.programs(chosen.program)
    if chosen.folder != "python":
        names = subject.node_programs(chosen.program) if chosen.folder == "node" else [chosen.program]
        programs = [(name,) for name in names]
    whole = {
        "server": chosen.name,
        "programs": programs,
        "root": subject.workspace,
        "python": subject.interpreter() if chosen.folder == "python" else "",
        "seconds": seconds,
        **question,
    }
    limits = dataclasses.replace(subject.limits, seconds=seconds + _GRACE_SECONDS)
    words = inside(host, "pawl.checks.lsp.session", json.dumps(whole))
    completed = dataclasses.replace(subject, limits=limits).run(words)
    if completed is None:
        return {"skipped": f"{host.python!r} cannot be started"}
    try:
        answer = read_json(completed.stdout.text)
    except ValueError:
        said = completed.stderr.text.strip().splitlines()[-1:] or ["it said nothing"]
        return {"skipped": stopped(completed) or said[0]}
    return answer if isinstance(answer, dict) else {"skipped": "its answer cannot be read"}
