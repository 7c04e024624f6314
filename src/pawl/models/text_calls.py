"""Blocks of text as tool calls, and tool calls and their answers as text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pawl.core.dialogue import Message, Speaker, ToolAnswer, ToolCall, ToolOffer
from pawl.models.blocks import EDIT, FILE, TOOL, Block
from pawl.models.calls import MOST_CALLS
from pawl.models.json_text import parsed

_CHANGE = re.compile(
    r"^<{7} ?SEARCH[ \t]*\r?\n(?P<old>.*?)^={7}[ \t]*\r?\n(?P<new>.*?)^>{7} ?REPLACE[ \t]*\r?$\n?",
    re.DOTALL | re.MULTILINE,
)
_MARK = re.compile(r"^(?:<{7} ?SEARCH|={7}|>{7} ?REPLACE)[ \t]*\r?$", re.MULTILINE)
_PARAMETER = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_TICKS = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTools:
    """The names of the tools that have a block of their own; empty where there is none."""

    patch: str = ""
    """Takes `path`, `old` and `new`."""
    file: str = ""
    """Takes `path` and `content`."""

    def offered(self, names: Collection[str]) -> EditTools:
        """Those of them that a request offers."""
        return EditTools(patch=self.patch if self.patch in names else "", file=self.file if self.file in names else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call before it has its id. Without arguments there is a mistake."""

    name: str
    arguments: Mapping[str, object] | None
    raw: str
    mistake: str = ""


def calls_in(block: Block, tools: Mapping[str, ToolOffer], edits: EditTools) -> list[Asked] | None:
    """What a block asks for; None when it is no call after all but text that looks like one."""
    match block.kind:
        case "edit" if edits.patch:
            return _changes(block, edits.patch)
        case "file" if edits.file:
            return [_file(block, edits.file)]
        case "function":
            return [_function(block, tools.get(block.head))]
        case "json" | "bare":
            value, _ = parsed(block.body.strip())
            asked = [_asked(one, block.body) for one in (value if isinstance(value, list) else [value])]
            is_call = bool(asked) and all(one.name in tools and not one.mistake for one in asked)
            return asked if is_call else None
    return _tool(block)


def numbered(asked: Sequence[Asked], first: int) -> tuple[ToolCall, ...]:
    """The calls under Pawl's own ids; those above the limit are answered with the limit."""
    calls = []
    for at, one in enumerate(asked[:MOST_CALLS]):
        is_over = at == MOST_CALLS - 1 and len(asked) > MOST_CALLS
        mistake = (
            f"the answer has {len(asked)} calls, and at most {MOST_CALLS - 1} are taken" if is_over else one.mistake
        )
        arguments = None if mistake else one.arguments
        calls.append(
            ToolCall(id=f"call_{first + at}", name=one.name, arguments=arguments, raw=one.raw, mistake=mistake)
        )
    return tuple(calls)


def as_text(messages: Iterable[Message], edits: EditTools) -> tuple[Message, ...]:
    """The conversation with calls and answers written out, the user and the model taking turns."""
    turns: list[Message] = []
    for message in messages:
        is_model = message.speaker is Speaker.ASSISTANT
        parts = [message.text, *(_written(call, edits) for call in message.calls), *map(_answer, message.answers)]
        text = "\n\n".join(part for part in parts if part and not part.isspace())
        if not text:
            continue
        speaker = Speaker.ASSISTANT if is_model else Speaker.USER
        if turns and turns[-1].speaker is speaker:
            text = f"{turns.pop().text}\n\n{text}"
        turns.append(Message(speaker=speaker, text=text, thoughts=message.thoughts if is_model else ()))
    return tuple(turns)


def _tool(block: Block) -> list[Asked]:
    """One call, a list of them, or one on each line."""
    body = block.body.strip()
    value, mistake = parsed(body)
    if not mistake:
        return [_asked(one, body) for one in (value if isinstance(value, list) else [value])]
    lines = [line for line in body.splitlines() if line.strip()]
    values = [parsed(line) for line in lines]
    if len(lines) > 1 and all(isinstance(one, dict) for one, _ in values):
        return [_asked(one, line) for (one, _), line in zip(values, lines, strict=True)]
    ending = "" if block.is_closed else "; the block is not closed"
    return [Asked(name="", arguments=None, raw=body, mistake=mistake + ending)]


def _asked(value: object, raw: str) -> Asked:
    """A call as models write it: with `arguments` or `parameters`, plain or inside of `function`."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return Asked(name="", arguments=None, raw=raw, mistake='a call is {"name": "TOOL", "arguments": {…}}')
    arguments = value.get("arguments", value.get("parameters", {}))
    if set(value) - {"name", "arguments", "parameters", "type", "id"}:
        return Asked(name=name, arguments=None, raw=raw, mistake='the fields of the tool go into "arguments"')
    if isinstance(arguments, str):
        arguments, mistake = parsed(arguments)
        if mistake:
            return Asked(name=name, arguments=None, raw=raw, mistake=f"the arguments: {mistake}")
    if not isinstance(arguments, dict):
        return Asked(name=name, arguments=None, raw=raw, mistake="the arguments must be a JSON object")
    return Asked(name=name, arguments=arguments, raw=json.dumps(arguments, ensure_ascii=False))


def _function(block: Block, offer: ToolOffer | None) -> Asked:
    """The form with a tag for each parameter; a text is a text, anything else is what the schema says it is."""
    body = block.body.strip()
    if not body or body.startswith("{"):
        value, mistake = parsed(body or "{}")
        arguments = value if isinstance(value, dict) else None
        return Asked(name=block.head, arguments=arguments, raw=body, mistake=mistake)
    found = {one["name"]: one["value"] for one in _PARAMETER.finditer(body)}
    if not found or _PARAMETER.sub("", body).strip():
        return Asked(name=block.head, arguments=None, raw=body, mistake="the parameters cannot be read")
    schema = offer.input_schema.get("properties") if offer is not None else None
    read = {name: _typed(value, schema, name) for name, value in found.items()}
    return Asked(name=block.head, arguments=read, raw=json.dumps(read, ensure_ascii=False))


def _typed(value: str, properties: object, name: str) -> object:
    described = properties.get(name) if isinstance(properties, Mapping) else None
    if "string" in _types(described):
        return value
    read, mistake = parsed(value.strip())
    return value if mistake else read


def _types(described: object) -> set[object]:
    if not isinstance(described, Mapping):
        return {"string"}
    choices = described.get("anyOf")
    return (
        {described.get("type"), *(one.get("type") for one in choices)}
        if isinstance(choices, list)
        else {described.get("type")}
    )


def _changes(block: Block, tool: str) -> list[Asked]:
    found = list(_CHANGE.finditer(block.body))
    mistake = "" if block.head else "the block does not name its file: write ```edit PATH"
    if not found or _CHANGE.sub("", block.body).strip():
        mistake = mistake or "an edit is <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE"
    elif any(_MARK.search(one["old"]) or _MARK.search(one["new"]) for one in found):
        mistake = mistake or f"a mark stands inside of the lines, so that it is not clear which is meant: call {tool}"
    if mistake:
        return [Asked(name=tool, arguments=None, raw=block.body, mistake=mistake)]
    fields = ({"path": block.head, "old": one["old"], "new": one["new"]} for one in found)
    return [Asked(name=tool, arguments=one, raw=json.dumps(one, ensure_ascii=False)) for one in fields]


def _file(block: Block, tool: str) -> Asked:
    mistake = "" if block.head else "the block does not name its file: write ```file PATH"
    if not block.is_closed:
        mistake = mistake or "the block is not closed, so that the file may be cut off"
    if mistake:
        return Asked(name=tool, arguments=None, raw=block.body, mistake=mistake)
    fields = {"path": block.head, "content": block.body}
    return Asked(name=tool, arguments=fields, raw=json.dumps(fields, ensure_ascii=False))


def _written(call: ToolCall, edits: EditTools) -> str:
    """A call in the form in which the model is asked to write it."""
    given = call.arguments
    if given is not None and call.name == edits.patch and set(given) == {"path", "old", "new"}:
        path, old, new = (given.get(name) for name in ("path", "old", "new"))
        is_plain = isinstance(path, str) and isinstance(old, str) and isinstance(new, str)
        if is_plain and not _MARK.search(f"{old}\n{new}"):
            return _fence(EDIT, f"{path}", f"<<<<<<< SEARCH\n{_lines(old)}=======\n{_lines(new)}>>>>>>> REPLACE\n")
    if given is not None and call.name == edits.file and set(given) == {"path", "content"}:
        path, content = given.get("path"), given.get("content")
        if isinstance(path, str) and isinstance(content, str):
            return _fence(FILE, path, _lines(content))
    if given is None:
        return _fence(TOOL, "", _lines(call.raw))
    return _fence(TOOL, "", json.dumps({"name": call.name, "arguments": given}, ensure_ascii=False) + "\n")


def _fence(kind: str, head: str, body: str) -> str:
    marks = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(body)), default=2))
    return f"{marks}{f'{kind} {head}'.rstrip()}\n{body}{marks}"


def _lines(text: object) -> str:
    shown = str(text)
    return shown if not shown or shown.endswith("\n") else f"{shown}\n"


def _answer(answer: ToolAnswer) -> str:
    return f"{'Failure' if answer.failed else 'Answer'} of {answer.name} ({answer.call}):\n{answer.text}"
