"""The report of a team in Markdown (D7): the planned changes with what became of each, repairs, and what is left.

It is the roles' own account, by their contracts; what is proved stands in the report of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pawl.agent.reasoning import decoded, json_object
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line

LONGEST = 200
HEADS = {"completed": "Reported as made", "partial": "Reported as made in part", "failed": "Reported as not made"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamReport:
    text: str
    left: tuple[str, ...] = ()


def team_report(said: str, reported: Sequence[tuple[str, str]]) -> TeamReport:
    """Made of the last plan; the words alone where nobody planned."""
    # A role of the user's own may answer by another contract.
    plans = _answers(reported, "planner", {"status", "plan", "results"})
    fixes = _answers(reported, "fixer", {"fixes_applied", "remaining_errors"})
    if not plans:
        return TeamReport(text=said)
    planner = plans[-1]
    results = {one["id"]: one for one in planner["results"]}
    rows, left = list[str](), list[str]()
    for change in planner["plan"]:
        result = results.get(change["id"], {"status": "failed", "detail": "nothing is reported"})
        what, path, detail = (_cell(text) for text in (change["what"], change["path"], result["detail"]))
        made = result["status"] == "completed"
        rows.append(f"| {change['id']} | {what} | `{path}` | {'made' if made else result['status']} | {detail} |")
        if not made:
            left.append(f"{what} ({path}): {detail}")
    parts = [
        f"**{HEADS[planner['status']]}.** {said}",
        "\n".join(("| | change | file | | |", "| --- | --- | --- | --- | --- |", *rows)) if rows else "",
        _listed("Repaired", (f"`{one['path']}`: {_cell(one['fix'])}" for fix in fixes for one in fix["fixes_applied"])),
        _listed("Left", (_cell(one) for one in fixes[-1]["remaining_errors"])) if fixes else "",
    ]
    return TeamReport(text="\n\n".join(filter(None, parts)), left=tuple(left))


def _answers(reported: Sequence[tuple[str, str]], who: str, keys: set[str]) -> list[dict[str, Any]]:
    found = (decoded(json_object(text)) for role, text in reported if role == who)
    return [one for one in found if one is not None and keys <= one.keys()]


def _listed(head: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return "\n".join((f"{head}:", *found)) if found else ""


def _cell(text: str) -> str:
    return one_line(text, LONGEST).replace("|", "\\|")
