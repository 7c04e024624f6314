"""Measures what a model does by itself, on little tasks: whether it calls tools, keeps a schema and edits exactly.

One that does not call tools well gets the whole context in one request from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pawl.core.dialogue import (
    Answered,
    Message,
    ModelResponse,
    Request,
    ToolAnswer,
    ToolCall,
    ToolOffer,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import AnswerUnusable, SchemaUnmet
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table
from pawl.models.providers import MEASURED, measured_models
from pawl.models.router import ModelConfig, Models

SYSTEM = "You are a coding agent. Use the tools you are given."
TOOLS = "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task: `of` is what it measures."""

    name: str
    of: str
    passed: bool
    said: str = ""
    """The answer, where it is wrong."""


def measured(config: ModelConfig, model: str, base: Path) -> Iterator[TaskResult]:
    """Asks the model each task, for real; what keeps it from being asked is raised."""
    table = data_table("pawl.models", "trial_tasks.toml")
    chosen = config.with_model(model)
    with Models(chosen, base=base) as models:
        for task in table["task"]:
            offers = tuple(_offer(name, table["tools"][name]) for name in task.get("tools", ()))
            schema = _object(task["schema"]) if "schema" in task else None
            request = Request(
                model=model,
                system=(SYSTEM,),
                messages=tuple(_messages(task)),
                tools=offers,
                answer_schema=schema,
                sampling=chosen.sampling,
            )
            try:
                answer = next(one.answer for one in models.router.stream(request) if isinstance(one, Answered))
                passed, said = _is_right(task, answer), _told(answer)
            except (AnswerUnusable, SchemaUnmet) as error:
                passed, said = False, error.message
            yield TaskResult(name=task["name"], of=task["of"], passed=passed, said="" if passed else said)


def remember(state: Path, model: str, results: tuple[TaskResult, ...]) -> bool:
    """Keeps the result; whether the model is to be asked once from now on."""
    once = any(not one.passed for one in results if one.of == TOOLS)
    known = measured_models(state)
    known[model] = {
        "once": once,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "passed": {one.name: one.passed for one in results},
    }
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = state / f"{MEASURED}.new"
    made.write_text(json.dumps(known, indent=1), "utf-8")
    made.replace(state / MEASURED)
    return once


def _messages(task: Mapping[str, Any]) -> Iterator[Message]:
    yield user(task["user"].replace("{file}", task.get("file", "")))
    if before := task.get("before"):
        raw = json.dumps(before["arguments"])
        call = ToolCall(id="call_1", name=before["name"], arguments=before["arguments"], raw=raw)
        yield assistant("", call)
        yield tool_answers(ToolAnswer(call="call_1", name=before["name"], text=before["text"]))


def _offer(name: str, row: Mapping[str, Any]) -> ToolOffer:
    return ToolOffer(name=name, description=row["description"], input_schema=_object(row["properties"]))


def _object(properties: Mapping[str, str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def _is_right(task: Mapping[str, Any], answer: ModelResponse) -> bool:
    call = answer.calls[0] if len(answer.calls) == 1 else None
    given = dict(call.arguments or {}) if call is not None else {}
    match task:
        case {"call": name, "arguments": wanted}:
            return call is not None and call.name == name and wanted.items() <= given.items()
        case {"says": word}:
            return not answer.calls and word in answer.text.lower()
        case {"value": wanted, "schema": kinds}:
            try:
                value = json.loads(answer.text)
            except ValueError:
                return False
            return isinstance(value, dict) and value.keys() == kinds.keys() and wanted.items() <= value.items()
        case {"file": text, "result": wanted}:
            old, new = str(given.get("old", "")), str(given.get("new", ""))
            return bool(old) and text.count(old) == 1 and text.replace(old, new) == wanted
    raise AssertionError(f"no task: {task}")


def _told(answer: ModelResponse) -> str:
    calls = " ".join(f"{call.name}({call.raw})" for call in answer.calls)
    return " ".join(f"{answer.text} {calls}".split())
