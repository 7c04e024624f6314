"""Values as JSON for programs: the same shape from whichever command they come."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.change import BlobReader, ChangeSet, Checkpoint, Entry, Node
from pawl.core.patch import summary
from pawl.core.run import DeliveryState, Report, RunState
from pawl.core.tiers import Attempt, EscalationState

if TYPE_CHECKING:
    from pawl.workspace.capture import HeldBack
    from pawl.workspace.project import Project

Json = dict[str, object]
_NOT_TEXT = re.compile("[\ud800-\udfff]")


def as_json(body: object) -> str:
    """One line that every reader of JSON takes."""
    return json.dumps(encoded(body), default=str)


def encoded(value: object) -> object:
    """Dataclasses as objects, money as numbers; names that are not UTF-8 with their odd bytes written out (`\\xe9`)."""
    match value:
        case str():
            return _NOT_TEXT.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", str(value))
        case Decimal():
            return float(value)
        case Mapping():
            return {key: encoded(one) for key, one in value.items()}
        case list() | tuple():
            return [encoded(one) for one in value]
        case _ if is_dataclass(value):
            return {one.name: encoded(getattr(value, one.name)) for one in fields(value)}
        case _:
            return value


def picked(value: object, names: str) -> Json:
    """These attributes of a value, by their names."""
    return {name: getattr(value, name) for name in names.split()}


def changes_json(changes: ChangeSet, blobs: BlobReader) -> list[Json]:
    return [
        {
            **path_json(change.path),
            "what": row.what,
            "before": _node(change.before),
            "after": _node(change.after),
            **picked(row, "added removed binary"),
        }
        for change, row in zip(changes, summary(changes, blobs), strict=True)
    ]


def _node(node: Node | None) -> Json | None:
    return None if node is None else {"kind": node.kind, "mode": f"{node.mode:o}"}


def path_json(path: str) -> Json:
    """A path, and where it is not UTF-8 its bytes as well."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"path": path, "path_base64": base64.b64encode(os.fsencode(path)).decode()}
    return {"path": path}


def held_json(held: HeldBack) -> Json:
    return {**path_json(held.path), **picked(held, "reason rule")}


def entry_json(entry: Entry) -> Json:
    return {
        **picked(entry, "id run kind title reason created state"),
        "paths": entry.files,
        **picked(entry, "reverses reversed_by pruned"),
    }


def checkpoint_json(one: Checkpoint) -> Json:
    return {
        **picked(one, "id name created after_entry"),
        "changes": [change.path for change in one.changes],
        **picked(one, "progress verification policy"),
    }


EXIT_WAITING = 4
"""The exit code of a run that waits for the user's answer."""


EXIT_CODES: Mapping[DeliveryState | None, int] = {
    DeliveryState.DONE: 0,
    DeliveryState.NEEDS_WORK: 1,
    DeliveryState.PARTLY: 5,
    DeliveryState.UNVERIFIED: 6,
}
EXIT_UNVERIFIED = EXIT_CODES[DeliveryState.UNVERIFIED]


def exit_code(report: Report) -> int:
    """0 when it is done; why not otherwise."""
    if report.state is RunState.WAITING:
        return EXIT_WAITING
    if report.trouble is not None:
        return report.trouble.exit_code
    if report.exit_code:
        return report.exit_code
    if report.delivery is not DeliveryState.DONE and report.ended in ("out_of_turns", "out_of_time"):
        return 53
    return EXIT_CODES.get(report.delivery, 1)


def report_json(shop: Project, report: Report, changes: ChangeSet) -> Json:
    trouble = report.trouble
    return {
        **picked(report, "run state intent delivery verdict answer before after"),
        "verdicts": [
            {"step": step, "standing": standing, "reason": reason} for step, standing, reason in report.verdicts
        ],
        **picked(report, "refused unproved notes tasks task_states"),
        "changes": changes_json(changes, shop.store.blobs),
        **picked(report, "entry kept alternatives commit question stale rejected review score"),
        "trouble": None if trouble is None else {"error": trouble.code, **picked(trouble, "message advice")},
        **picked(report, "ended model conversation requests"),
        "usage": picked(report, "input_tokens output_tokens cached_tokens"),
        "cost_usd": report.cost,
        "seconds": round(report.seconds, 3),
        "exit_code": exit_code(report),
        "loop": None if report.climb is None else _climb_json(report.climb),
    }


def _climb_json(climb: EscalationState) -> Json:
    return {
        "failing": climb.failing,
        "tiers": [picked(tier, "name mode iterations") for tier in climb.ladder.tiers],
        "left": [picked(gate, "tier reason") for gate in climb.gates],
        "attempts": [_attempt_json(one) for one in climb.attempts],
    }


def _attempt_json(one: Attempt) -> Json:
    return {
        "tier": one.at.tier,
        "iteration": one.at.number,
        **picked(one, "sample mode model"),
        "ended": one.end,
        **picked(one, "failing paths refused better said diff messages"),
        "cost_usd": one.cost,
        **picked(one, "tokens seconds"),
    }
