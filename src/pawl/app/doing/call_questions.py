"""The question about one call of a tool: bound to its exact arguments, and shown so that nothing in it hides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pawl.core.redact import redacted_body
from pawl.core.runs import Question
from pawl.core.shown_text import Shown
from pawl.policy.call_display import shown_call

CANNOT_BE_SHOWN = "the user is asked about it, and part of it looks like a secret, which is never shown"


def can_be_shown(arguments: Mapping[str, object]) -> bool:
    """Whether no part would be hidden as a secret: the user approves what runs, not what is left of it."""
    exact: object = json.loads(json.dumps(dict(arguments), default=str))
    return redacted_body(arguments) == exact


def call_question(call: str, tool: str, arguments: Mapping[str, object], why: tuple[str, ...]) -> Question:
    """The question about that call of a run; its digest is of the exact arguments."""
    exact = json.dumps([call, tool, arguments], sort_keys=True, default=str)
    digest = hashlib.sha256(exact.encode("utf-8", "surrogatepass")).hexdigest()
    shown = shown_call(tool, arguments)
    return Question(
        kind="call",
        digest=digest,
        why=why,
        tool=tool,
        arguments=dict(arguments),
        shown=shown.lines,
        flags=shown.flags,
    )


def whole_call(question: Question) -> Shown:
    """Every line of it."""
    return shown_call(question.tool, question.arguments, whole=True)
