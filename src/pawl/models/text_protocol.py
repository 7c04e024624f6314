"""Tools and schemas for models that know neither: asked for in words, read from blocks in the answer.

A model's text is read this way because the protocol was chosen for that model; from any other, the same text is text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import field, replace
from importlib import resources

from pawl.core.dialogue import (
    Answered,
    FellBack,
    Message,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Speaker,
    StopReason,
    TextDelta,
    ToolAnswer,
    ToolCall,
    ToolOffer,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.models import Model
from pawl.models.calls import MOST_CALLS, limited, next_number, objects, parsed
from pawl.models.providers import CallStyle, Capabilities, EditBlock
from pawl.sandbox.cancel import CancelToken

TOOL = "tool"
JSON = "json"
EDIT = "edit"
FILE = "file"
FUNCTION = "function"
BARE = "bare"

_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,})[ \t]*(?P<info>[^`\n]*)$", re.MULTILINE)
_FENCE_START = re.compile(r" {0,3}(?:`[^\n]*)?\Z")
_TAG = re.compile(r"<tool_call>|<function=(?P<name>[\w.-]+)>")
_TAG_WORDS = ("<tool_call>", "<function=")
_OPEN_TAG = re.compile(r"<function=[\w.-]*\Z")
_SEARCH = re.compile(r"<{7} ?SEARCH\s*")
_REPLACE = re.compile(r">{7} ?REPLACE\s*")


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBlock:
    kind: str
    head: str = ""
    """The words after the kind: a path, or the name of a tool."""
    body: str
    is_closed: bool
    source: str
    """All of it, as it was written."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A block, or a fence of another kind (an empty kind), while its end is not seen."""

    kind: str
    head: str = ""
    marks: int = 0
    """The length of the fence; 0 where there is none."""
    opening: str = ""
    body: list[str] = field(default_factory=list)
    is_replacing: bool = False
    """Inside of a part that an edit replaces, where fences belong to the file."""

    @property
    def closing(self) -> str:
        return "</function>" if self.kind == FUNCTION else "</tool_call>"

    def closed(self, closing: str | None) -> CallBlock:
        body = "".join(self.body)
        is_closed = closing is not None or self.kind == BARE
        source = self.opening + body + (closing or "")
        return CallBlock(kind=self.kind, head=self.head, body=body, is_closed=is_closed, source=source)

    def ends_with(self, line: str) -> bool:
        """Whether this line closes the fence; it is taken note of otherwise."""
        if self.kind == EDIT:
            self.is_replacing = (self.is_replacing or _SEARCH.fullmatch(line) is not None) and not _REPLACE.fullmatch(
                line
            )
        fence = None if self.is_replacing else _FENCE.fullmatch(line.rstrip("\r\n"))
        return fence is not None and not fence["info"].strip() and len(fence["marks"]) >= self.marks


class Scanner:
    """Give it the text in pieces with `feed`, and take the rest with `finish`."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = frozenset(kinds)
        self._held = ""
        self._open: _Open | None = None
        self._is_first = True
        """Nothing but blanks has come yet."""
        self._at_line_start = True

    def feed(self, text: str) -> list[Prose | CallBlock]:
        self._held += text
        return list(self._parts(is_last=False))

    def finish(self) -> list[Prose | CallBlock]:
        """The rest, when nothing follows; a block without its end is given as such."""
        parts = list(self._parts(is_last=True))
        if self._open is not None and self._open.kind:
            self._open.body.append(self._held)
            parts.append(self._open.closed(None))
        self._open, self._held = None, ""
        return parts

    def _parts(self, *, is_last: bool) -> Iterator[Prose | CallBlock]:
        while self._held:
            before = (self._held, self._open)
            part = self._prose(is_last=is_last) if self._open is None else self._inside(self._open, is_last=is_last)
            if part is not None:
                yield part
            if (self._held, self._open) == before:
                return

    def _prose(self, *, is_last: bool) -> Prose | None:
        """Releases what stands before the next block, or opens it."""
        if self._is_first and BARE in self._kinds and self._held.lstrip().startswith("{"):
            self._open = _Open(kind=BARE)
            return None
        at, found = self._first_opening(is_last=is_last)
        if found is None:
            return self._released(len(self._held) if is_last else self._safe())
        if at:
            return self._released(at)
        self._open = found
        if not found.kind:
            return self._released(len(found.opening))
        self._held = self._held[len(found.opening) :]
        self._is_first = False
        return None

    def _first_opening(self, *, is_last: bool) -> tuple[int, _Open | None]:
        fence = next((one for one in _FENCE.finditer(self._held) if one.start() or self._at_line_start), None)
        tag = _TAG.search(self._held) if TOOL in self._kinds else None
        if tag is not None and (fence is None or tag.start() < fence.start()):
            kind = FUNCTION if tag["name"] else TOOL
            return tag.start(), _Open(kind=kind, head=tag["name"] or "", opening=tag[0])
        if fence is None or (fence.end() == len(self._held) and not is_last):
            # Until its line is whole, it is not known what a fence opens.
            return 0, None
        word, _, head = fence["info"].strip().partition(" ")
        kind = TOOL if word.lower() == "tool_call" else word.lower()
        opening = self._held[fence.start() : fence.end() + 1]
        marks = len(fence["marks"])
        kind = kind if kind in self._kinds else ""
        return fence.start(), _Open(kind=kind, head=head.strip(), marks=marks, opening=opening)

    def _safe(self) -> int:
        """How much of the held prose cannot be the beginning of anything."""
        ends = [len(self._held)]
        line = self._held.rfind("\n") + 1
        if (line or self._at_line_start) and _FENCE_START.match(self._held, line):
            ends.append(line)
        if TOOL in self._kinds and (at := self._held.rfind("<")) != -1:
            rest = self._held[at:]
            if any(word.startswith(rest) for word in _TAG_WORDS) or _OPEN_TAG.match(rest):
                ends.append(at)
        if self._is_first and BARE in self._kinds and not self._held.strip():
            ends.append(0)
        return min(ends)

    def _released(self, size: int) -> Prose | None:
        text, self._held = self._held[:size], self._held[size:]
        if not text:
            return None
        self._is_first = self._is_first and not text.strip()
        self._at_line_start = text.endswith("\n")
        return Prose(text)

    def _inside(self, block: _Open, *, is_last: bool) -> Prose | CallBlock | None:
        if block.kind == BARE:
            block.body.append(self._held)
            self._held = ""
            return None
        return self._fenced(block, is_last=is_last) if block.marks else self._tagged(block)

    def _fenced(self, block: _Open, *, is_last: bool) -> Prose | CallBlock | None:
        """Takes one line."""
        size = self._held.find("\n") + 1
        if not size:
            if not is_last:
                return None
            size = len(self._held)
        line = self._held[:size]
        is_end = block.ends_with(line)
        if is_end:
            self._open = None
        if not block.kind:
            return self._released(size)
        self._held = self._held[size:]
        self._at_line_start = True
        if is_end:
            return block.closed(line)
        block.body.append(line)
        return None

    def _tagged(self, block: _Open) -> CallBlock | None:
        at = self._held.find(block.closing)
        if at == -1:
            # Only the end of what is held can be the beginning of the closing tag.
            kept = len(block.closing) - 1
            block.body.append(self._held[:-kept])
            self._held = self._held[-kept:]
            return None
        block.body.append(self._held[:at])
        self._held = self._held[at + len(block.closing) :]
        self._at_line_start = False
        self._open = None
        return block.closed(block.closing)


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


def calls_in(block: CallBlock, tools: Mapping[str, ToolOffer], edits: EditTools) -> list[ToolCall] | None:
    """The calls that a block asks for; None when it is no call after all but text that looks like one."""
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
        files = message.files
        if turns and turns[-1].speaker is speaker:
            before = turns.pop()
            text, files = f"{before.text}\n\n{text}", (*before.files, *files)
        turns.append(Message(speaker=speaker, text=text, thoughts=message.thoughts if is_model else (), files=files))
    return tuple(turns)


def _right(name: str, arguments: Mapping[str, object]) -> ToolCall:
    """A call before it has its id."""
    return ToolCall(id="", name=name, arguments=arguments, raw=json.dumps(arguments, ensure_ascii=False))


def _wrong(name: str, raw: str, mistake: str) -> ToolCall:
    return ToolCall(id="", name=name, arguments=None, raw=raw, mistake=mistake)


def _tool(block: CallBlock) -> list[ToolCall]:
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
    return [_wrong("", body, mistake + ending)]


def _asked(value: object, raw: str) -> ToolCall:
    """A call as models write it: with `arguments` or `parameters`, plain or inside of `function`."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return _wrong("", raw, 'a call is {"name": "TOOL", "arguments": {…}}')
    arguments = value.get("arguments", value.get("parameters", {}))
    if set(value) - {"name", "arguments", "parameters", "type", "id"}:
        return _wrong(name, raw, 'the fields of the tool go into "arguments"')
    if isinstance(arguments, str):
        arguments, mistake = parsed(arguments)
        if mistake:
            return _wrong(name, raw, f"the arguments: {mistake}")
    if not isinstance(arguments, dict):
        return _wrong(name, raw, "the arguments must be a JSON object")
    return _right(name, arguments)


def _function(block: CallBlock, offer: ToolOffer | None) -> ToolCall:
    """The form with a tag for each parameter; a text is a text, anything else is what the schema says it is."""
    body = block.body.strip()
    if not body or body.startswith("{"):
        value, mistake = parsed(body or "{}")
        return _right(block.head, value) if isinstance(value, dict) else _wrong(block.head, body, mistake)
    found = {one["name"]: one["value"] for one in _PARAMETER.finditer(body)}
    if not found or _PARAMETER.sub("", body).strip():
        return _wrong(block.head, body, "the parameters cannot be read")
    properties = None if offer is None else offer.input_schema.get("properties")
    described = properties if isinstance(properties, Mapping) else {}
    return _right(block.head, {name: _typed(value, described.get(name)) for name, value in found.items()})


def _typed(value: str, described: object) -> object:
    read, mistake = parsed(value.strip())
    return value if mistake or not isinstance(described, Mapping) or _may_be_text(described) else read


def _may_be_text(described: Mapping[str, object]) -> bool:
    kinds, choices = described.get("type"), described.get("anyOf")
    every = choices if isinstance(choices, list | tuple) else ()
    named = "string" in kinds if isinstance(kinds, list | tuple) else kinds == "string"
    return named or any(_may_be_text(one) for one in every if isinstance(one, Mapping))


def _changes(block: CallBlock, tool: str) -> list[ToolCall]:
    found = list(_CHANGE.finditer(block.body))
    mistake = "" if block.head else "the block does not name its file: write ```edit PATH"
    if not found or _CHANGE.sub("", block.body).strip():
        mistake = mistake or "an edit is <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE"
    elif any(_MARK.search(one["old"]) or _MARK.search(one["new"]) for one in found):
        mistake = mistake or f"a mark stands inside of the lines, so that it is not clear which is meant: call {tool}"
    if mistake:
        return [_wrong(tool, block.body, mistake)]
    return [_right(tool, {"path": block.head, "old": one["old"], "new": one["new"]}) for one in found]


def _file(block: CallBlock, tool: str) -> ToolCall:
    mistake = "" if block.head else "the block does not name its file: write ```file PATH"
    if not block.is_closed:
        mistake = mistake or "the block is not closed, so that the file may be cut off"
    if mistake:
        return _wrong(tool, block.body, mistake)
    return _right(tool, {"path": block.head, "content": block.body})


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


_ENDED = (StopReason.END, StopReason.CALLS, StopReason.SEQUENCE)


class TextProtocol:
    """Fits `Model`, around a model that is sent neither tools nor, where that is text too, schemas."""

    def __init__(self, model: Model, *, tools: CallStyle, schema: CallStyle, edits: EditTools | None = None) -> None:
        self._model = model
        self._tools = tools
        self._schema = schema
        self._edits = edits or EditTools()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        reader = _Reader(request, self._edits) if self._tools is CallStyle.TEXT and request.tools else None
        events = self._model.stream(self._spoken(request), cancel=cancel)
        try:
            for event in events:
                match event:
                    case TextDelta(text=text) if reader is not None:
                        yield from reader.heard(text)
                    case Answered(answer=answer):
                        if reader is not None:
                            yield from reader.rest()
                            answer = reader.read(answer)
                        yield Answered(self._by_schema(request, answer))
                    case _:
                        if reader is not None and isinstance(event, Retrying | FellBack):
                            reader = _Reader(request, self._edits)
                        yield event
        finally:
            events.close()

    def _spoken(self, request: Request) -> Request:
        """The request in words."""
        system = [*request.system]
        if self._tools is CallStyle.TEXT:
            edits = self._edits.offered({offer.name for offer in request.tools})
            system += [_tools_text(request.tools, edits)] if request.tools else []
            request = replace(request, messages=as_text(request.messages, self._edits), tools=())
        if self._schema is CallStyle.TEXT and request.answer_schema is not None:
            system.append(f"{_prompt('text_schema')}{_compact(request.answer_schema)}")
            request = replace(request, answer_schema=None)
        return replace(request, system=tuple(system))

    def _by_schema(self, request: Request, answer: ModelResponse) -> ModelResponse:
        """The first JSON object of the answer; if there is none, the text stays for whoever checks it."""
        if (
            self._schema is not CallStyle.TEXT
            or request.answer_schema is None
            or answer.calls
            or answer.stop not in _ENDED
        ):
            return answer
        start, end = next(objects(answer.text), (0, len(answer.text)))
        return replace(answer, text=answer.text[start:end])


def fitted(model: Model, can: Capabilities, edits: EditTools) -> Model:
    """The model as it is, or with the text protocol where its capabilities say so."""
    if can.tools is CallStyle.NATIVE and can.schema is CallStyle.NATIVE:
        return model
    shown = EditTools(
        patch=edits.patch if EditBlock.PATCH in can.edits else "",
        file=edits.file if EditBlock.FILE in can.edits else "",
    )
    return TextProtocol(model, tools=can.tools, schema=can.schema, edits=shown)


class _Reader:
    """Reads one answer: prose is passed on, blocks are kept back."""

    def __init__(self, request: Request, edits: EditTools) -> None:
        self._request = request
        self._offers = {offer.name: offer for offer in request.tools}
        self._edits = edits.offered(self._offers)
        self._scanner = self._new_scanner()

    def heard(self, text: str) -> Generator[TextDelta, None, None]:
        yield from self._shown(self._scanner.feed(text))

    def rest(self) -> Generator[TextDelta, None, None]:
        yield from self._shown(self._scanner.finish())

    def read(self, answer: ModelResponse) -> ModelResponse:
        """The answer with its calls. One that was cut off or refused has none, and its text stays as it is."""
        if answer.stop not in _ENDED:
            return answer
        scanner = self._new_scanner()
        prose: list[str] = []
        asked: list[ToolCall] = []
        for part in (*scanner.feed(answer.text), *scanner.finish()):
            found = self._calls(part)
            if found is None:
                prose.append(part.text if isinstance(part, Prose) else part.source)
            else:
                asked += found
        if not asked:
            return answer
        first = next_number(self._request.messages)
        calls = [replace(call, id=f"call_{first + at}") for at, call in enumerate(asked[:MOST_CALLS])]
        return replace(answer, text="".join(prose).strip(), calls=limited(calls, len(asked)), stop=StopReason.CALLS)

    def _new_scanner(self) -> Scanner:
        kinds = {TOOL, JSON, FUNCTION, BARE}
        kinds |= {EDIT} if self._edits.patch else set()
        kinds |= {FILE} if self._edits.file else set()
        return Scanner(kinds)

    def _shown(self, parts: list[Prose | CallBlock]) -> Generator[TextDelta, None, None]:
        for part in parts:
            if isinstance(part, Prose):
                yield TextDelta(part.text)
            elif self._calls(part) is None:
                yield TextDelta(part.source)

    def _calls(self, part: Prose | CallBlock) -> list[ToolCall] | None:
        return None if isinstance(part, Prose) else calls_in(part, self._offers, self._edits)


def _tools_text(tools: tuple[ToolOffer, ...], edits: EditTools) -> str:
    """How to call, and what there is to call."""
    parts = [_prompt("text_tools")]
    parts += [_prompt("text_patch")] if edits.patch else []
    parts += [_prompt("text_file")] if edits.file else []
    offers = [_offer_text(offer) for offer in tools if offer.name not in (edits.patch, edits.file)]
    return "\n".join(parts) + ("\nThe tools:\n\n" + "\n".join(offers) if offers else "")


def _offer_text(offer: ToolOffer) -> str:
    lines = [f"- {offer.name}: {' '.join(offer.description.split())}"]
    properties, required = offer.input_schema.get("properties"), offer.input_schema.get("required")
    if isinstance(properties, Mapping):
        needed = required if isinstance(required, list | tuple) else ()
        lines += (_field_text(name, described, is_needed=name in needed) for name, described in properties.items())
    return "\n".join(lines)


def _field_text(name: str, described: object, *, is_needed: bool) -> str:
    table = described if isinstance(described, Mapping) else {}
    meaning = table.get("description")
    kind = _kind(table) + ("" if is_needed else ", optional")
    return f"  {name} ({kind})" + (f": {meaning}" if isinstance(meaning, str) else "")


def _kind(table: Mapping[str, object]) -> str:
    """A schema in a word where a word is enough."""
    match table:
        case {"enum": [*choices]}:
            return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        case {"anyOf": [dict() as inner, {"type": "null"}]}:
            return _kind(inner)
        case {"type": "array", "items": {"type": str(kind)}} if kind != "object":
            return f"array of {kind}"
        case {"type": "string" | "integer" | "number" | "boolean" as kind}:
            return str(kind)
    return _compact({name: value for name, value in table.items() if name != "description"})


def _compact(schema: Mapping[str, object]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


@functools.cache
def _prompt(name: str) -> str:
    return (resources.files("pawl.models") / "prompts" / f"{name}.md").read_text("utf-8")
