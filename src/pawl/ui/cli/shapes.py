"""Values as JSON: the same shape from whichever command they come."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from dataclasses import asdict

from pawl.core.change import BlobReader, ChangeSet, Node
from pawl.core.diagnostic import counts_json
from pawl.core.errors import UsageError
from pawl.core.history import Checkpoint, Entry
from pawl.core.patch import summary
from pawl.core.run import DeliveryState, Report, RunState
from pawl.workspace.project import Project

Json = dict[str, object]
_NOT_TEXT = re.compile("[\ud800-\udfff]")


def as_json(body: object) -> str:
    """One line that every reader of JSON takes."""
    return json.dumps(_as_text(body), default=str)


def changes_json(changes: ChangeSet, blobs: BlobReader) -> list[Json]:
    return [
        {
            **path_json(change.path),
            "what": row.what,
            "before": _node(change.before),
            "after": _node(change.after),
            "added": row.added,
            "removed": row.removed,
            "binary": row.binary,
        }
        for change, row in zip(changes, summary(changes, blobs), strict=True)
    ]


def path_json(path: str) -> Json:
    """A path, and where it is not UTF-8 its bytes as well."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"path": path, "path_base64": base64.b64encode(os.fsencode(path)).decode()}
    return {"path": path}


def entry_json(entry: Entry) -> Json:
    return {
        "id": entry.id,
        "run": entry.run,
        "kind": entry.kind,
        "title": entry.title,
        "reason": entry.reason,
        "created": entry.created,
        "state": entry.state,
        "paths": entry.files,
        "reverses": entry.reverses,
        "reversed_by": entry.reversed_by,
        "pruned": entry.pruned,
    }


def checkpoint_json(one: Checkpoint) -> Json:
    return {
        "id": one.id,
        "name": one.name,
        "created": one.created,
        "after_entry": one.after_entry,
        "changes": [change.path for change in one.changes],
        "progress": dict(one.progress),
        "verification": dict(one.verification),
        "policy": {
            "automatic_on_error": one.policy.automatic_on_error,
            "depth": one.policy.depth,
            "preserve_user_edits": one.policy.preserve_user_edits,
        },
    }


def _node(node: Node | None) -> Json | None:
    return None if node is None else {"kind": node.kind, "mode": f"{node.mode:o}"}


def _as_text(value: object) -> object:
    """Names that are not UTF-8 have their odd bytes written out, such as `caf\\xe9`."""
    match value:
        case str():
            return _NOT_TEXT.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", str(value))
        case dict():
            return {key: _as_text(one) for key, one in value.items()}
        case list() | tuple():
            return [_as_text(one) for one in value]
        case _:
            return value


WAITING = 4
"""The exit code of a run that waits for the user's answer."""


def exit_code(report: Report) -> int:
    """0 when it is done; why not otherwise."""
    if report.state is RunState.WAITING:
        return WAITING
    if report.trouble is not None:
        return report.trouble.exit_code
    if report.exit_code:
        return report.exit_code
    if report.delivery is DeliveryState.DONE:
        return 0
    return 53 if report.ended in ("out_of_turns", "out_of_time") else 1


def as_body(shop: Project, report: Report, changes: ChangeSet) -> dict[str, object]:
    question = report.question
    return {
        "run": report.run,
        "state": report.state,
        "intent": report.intent,
        "delivery": report.delivery,
        "answer": report.answer,
        "before": counts_json(report.before),
        "after": counts_json(report.after),
        "verdicts": [
            {"step": step, "standing": standing, "reason": reason} for step, standing, reason in report.verdicts
        ],
        "refused": list(report.refused),
        "notes": list(report.notes),
        "tasks": list(report.tasks),
        "changes": changes_json(changes, shop.store.blobs),
        "entry": report.entry,
        "kept": report.kept,
        "commit": report.commit,
        "question": None if question is None else asdict(question),
        "stale": report.stale,
        "rejected": report.rejected,
        "review": None
        if report.review is None
        else {
            "summary": report.review.summary,
            "findings": list(report.review.findings),
            "missing_tests": list(report.review.missing_tests),
            "confidence": report.review.confidence,
        },
        "score": report.score,
        "trouble": None
        if report.trouble is None
        else {"error": report.trouble.code, "message": report.trouble.message, "advice": report.trouble.advice},
        "ended": report.ended,
        "model": report.model,
        "conversation": report.conversation,
        "requests": report.requests,
        "usage": {
            "input_tokens": report.input_tokens,
            "output_tokens": report.output_tokens,
            "cached_tokens": report.cached_tokens,
        },
        "cost_usd": None if report.cost is None else float(report.cost),
        "seconds": round(report.seconds, 3),
        "exit_code": exit_code(report),
    }


def words_of(text: str | None) -> tuple[str, ...]:
    """Empty when it is not given."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--test {text!r} cannot be read: {error}", advice="close the quotes") from error
    if not words:
        raise UsageError("--test names no command", advice="give one such as --test 'pytest tests/unit'")
    return words
