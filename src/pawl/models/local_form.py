"""A request with tools in the form that a small model can keep to: tools as text, each answer a call or the last word.

Tried on models of half a billion and one and a half billion weights: with the two apart, and a reminder after each
result, they choose better than with words and call side by side, with the answer as one more tool, or with a thought
asked for first.
"""

from __future__ import annotations

import functools
import json
import re
import string
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
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
    assistant,
    user,
)
from pawl.core.errors import AnswerUnusable
from pawl.core.lazy_dataclass import dataclass
from pawl.models import Model
from pawl.models.calls import Scrubber, next_number, parsed_arguments, scrubbed
from pawl.models.wire import mended
from pawl.sandbox.cancel import CancelToken

CALL, TOOL, ARGUMENTS = "call", "tool", "arguments"
SAY, ANSWER = "say", "answer"
PLACES, FILE, LINE, QUOTE = "places", "file", "line", "text"
"""Where the files that were read say so: asked for by schema, because small models do not cite by themselves."""
_READER = "file_read"
_MOST_FILES, _MOST_PLACES, _LONGEST_QUOTE = 20, 4, 120
_REMINDER = 'If the request is done or can be answered now, reply {{"{ending}": {value}}}. If not, call the next tool.'
_ANSWER_NOW = (
    "{question}\n\nAnswer exactly this from the files above, in one to three whole sentences with the names and values "
    'that the code has, as {{"say": your sentences, "places": [{{"file": a path, "text": a copy of the line that says '
    'so, "line": the number before it}}]}}.'
)
_VALUES = {SAY: '"..."', ANSWER: "..."}
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one request is asked, and what its last word is called: `say` for text, `answer` for a schema's value."""

    ending: str
    files: tuple[str, ...] = ()
    """Those that were read, to be cited in an answer in words."""
    tools: bool = True

    @classmethod
    def of(cls, request: Request) -> Form:
        if request.answer_schema is not None:
            return cls(ending=ANSWER)
        return cls(ending=SAY, files=_files_read(request.messages), tools=bool(request.tools))

    def filled(self, request: Request) -> Request:
        """The same request without tools: they are described in the system text, and a schema holds the answer."""
        return replace(
            request,
            system=(*request.system, self._described(request.tools)) if self.tools else request.system,
            messages=self._turns(request.messages),
            tools=(),
            answer_schema=self._schema(request.tools, request.answer_schema),
            # They would cut the JSON; what they are meant for is the text inside of it.
            sampling=replace(request.sampling, stop=()),
        )

    def _described(self, offers: Sequence[ToolOffer]) -> str:
        finish = '{"say": "your answer"}' if self.ending == SAY else '{"answer": ...}'
        tools = "\n".join(f"- {offer.name}({_fields(offer.input_schema)}): {offer.description}" for offer in offers)
        return _text().substitute(tools=tools, finish=finish)

    def _schema(self, offers: Sequence[ToolOffer], answer: Mapping[str, object] | None) -> dict[str, object]:
        shelf: dict[str, object] = {}
        calls = [
            _closed({TOOL: {"const": offer.name}, ARGUMENTS: _placed(offer.input_schema, f"tool_{number}", shelf)})
            for number, offer in enumerate(offers, start=1)
        ]
        last = {"type": "string"} if answer is None else _placed(answer, ANSWER, shelf)
        ending = {self.ending: last, **({PLACES: self._places()} if self.files else {})}
        called = [_closed({CALL: {"anyOf": calls}})] if calls else []
        shape: dict[str, object] = {"anyOf": [*called, _closed(ending)]} if called else _closed(ending)
        return {**shape, "$defs": shelf} if shelf else shape

    def _places(self) -> dict[str, object]:
        quote = {} if self.tools else {QUOTE: {"type": "string", "maxLength": _LONGEST_QUOTE}}
        place = _closed({FILE: {"enum": list(self.files)}, **quote, LINE: {"type": "integer", "minimum": 1}})
        return {"type": "array", "items": place, "minItems": 1, "maxItems": _MOST_PLACES}

    def _turns(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        turns: list[Message] = []
        calls: tuple[ToolCall, ...] = ()
        said = ""
        for message in mended(messages):
            match message.speaker:
                case Speaker.USER:
                    _add(turns, message)
                case Speaker.TOOL:
                    for number, (call, answer) in enumerate(zip(calls, message.answers, strict=True)):
                        turns.append(assistant(_call_text(call, "" if number else said)))
                        _add(turns, user(self._result(answer)))
                case Speaker.ASSISTANT if message.calls:
                    calls, said = message.calls, message.text
                case Speaker.ASSISTANT:
                    turns.append(assistant(self._last_word(message.text)))
        if not self.tools:
            # Small models answer what was said last.
            asked = next((one.text for one in reversed(messages) if one.speaker is Speaker.USER), "")
            _add(turns, user(_ANSWER_NOW.format(question=asked)))
        return tuple(turns)

    def _result(self, answer: ToolAnswer) -> str:
        how = " (failed)" if answer.failed else ""
        value = _VALUES[self.ending]
        if self.files:
            value += f', "{PLACES}": [{{"{FILE}": "...", "{LINE}": the number before the line that says so}}]'
        if not self.tools:
            return f"Result of {answer.name}{how}:\n{answer.text}"
        reminder = _REMINDER.format(ending=self.ending, value=value)
        return f"Result of {answer.name}{how}:\n{answer.text}\n\n{reminder}"

    def _last_word(self, text: str) -> str:
        if self.ending == ANSWER:
            try:
                return _json({ANSWER: json.loads(text)})
            except (ValueError, RecursionError):
                pass
        return _json({SAY: text})


def _files_read(messages: Sequence[Message]) -> tuple[str, ...]:
    """The paths of the reads that worked, the latest ones of many."""
    found: dict[str, None] = {}
    calls: tuple[ToolCall, ...] = ()
    for message in messages:
        calls = message.calls or calls
        for call in calls:
            path = (call.arguments or {}).get("path")
            worked = any(answer.call == call.id and not answer.failed for answer in message.answers)
            if call.name == _READER and isinstance(path, str) and worked:
                found[path] = None
    return tuple(found)[-_MOST_FILES:]


def cited(text: str, places: object, messages: Sequence[Message] = ()) -> str:
    """The text with the places that it does not name itself; a line that was copied is told from what was read."""
    if not isinstance(places, list):
        return text
    named = [_place(one, messages) for one in places if isinstance(one, dict)]
    missing = [place for place in dict.fromkeys(named) if place not in text]
    return f"{text.rstrip()} ({', '.join(missing)})" if missing else text


def _place(place: Mapping[str, object], messages: Sequence[Message]) -> str:
    """The line that was copied, or a part of it, the nearest of several; where the file that was said has none such, in
    the one that has; else what was said."""
    file, said, (quote, *_) = place.get(FILE), place.get(LINE), str(place.get(QUOTE) or "").strip().splitlines() or [""]
    paths = {call.id: (call.arguments or {}).get("path") for one in messages for call in one.calls}
    same: dict[object, list[int]] = {}
    for answer in (answer for message in messages for answer in message.answers):
        lines = [int(found[1]) for found in _NUMBERED.finditer(answer.text) if quote and quote in found[2]]
        same.setdefault(paths.get(answer.call), []).extend(lines)
    others = [path for path, lines in same.items() if lines]
    if not same.get(file) and len(others) == 1 and len(quote) >= _TELLING:
        file = others[0]
    lines = same.get(file, [])
    return f"{file}:{min(lines, key=lambda number: abs(number - said)) if lines and isinstance(said, int) else said}"


_TELLING = 8
"""Characters of a copied line that say which file it is of."""
_NUMBERED = re.compile(r"^ *(\d+) \| (.*)$", re.MULTILINE)


def _add(turns: list[Message], message: Message) -> None:
    """The templates of many models want the speakers to take turns."""
    if turns and turns[-1].speaker is Speaker.USER:
        message = user(f"{turns.pop().text}\n\n{message.text}")
    turns.append(message)


def _call_text(call: ToolCall, said: str) -> str:
    """As the model wrote it where that is known, so that what was read before need not be read again."""
    arguments = call.raw if call.arguments is not None and call.raw.strip() else _json(dict(call.arguments or {}))
    words = f"{_json(SAY)}: {_json(said)}, " if said else ""
    return f"{{{words}{_json(CALL)}: {{{_json(TOOL)}: {_json(call.name)}, {_json(ARGUMENTS)}: {arguments}}}}}"


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _placed(schema: Mapping[str, object], name: str, shelf: dict[str, object]) -> Mapping[str, object]:
    """The schema inside of another one. One with references into itself is put on the shelf and pointed to."""
    moved = _moved(schema, f"#/$defs/{name}")
    if moved == schema:
        return schema
    shelf[name] = moved
    return {"$ref": f"#/$defs/{name}"}


def _moved(value: object, place: str) -> object:
    if isinstance(value, Mapping):
        return {
            key: place + inner.removeprefix("#")
            if key == "$ref" and isinstance(inner, str) and inner.startswith("#")
            else _moved(inner, place)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_moved(inner, place) for inner in value]
    return value


def _fields(schema: Mapping[str, object], root: Mapping[str, object] | None = None, depth: int = 0) -> str:
    """The fields of an object, as a signature."""
    root = schema if root is None else root
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return "..."
    needed = set(required) if isinstance(required, list | tuple) else set()
    return ", ".join(
        f"{name}{'' if name in needed else '?'}: {_kind(inner, root, depth + 1)}{_note(inner)}"
        for name, inner in properties.items()
    )


def _kind(schema: object, root: Mapping[str, object], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "..."
    match schema:
        case {"$ref": str(pointer)}:
            return _kind(_found(root, pointer), root, depth + 1)
        case {"const": value}:
            return _json(value)
        case {"enum": [*values]}:
            return "|".join(_json(value) for value in values)
        case {"anyOf": [*kinds]} | {"oneOf": [*kinds]}:
            return "|".join(_kind(inner, root, depth + 1) for inner in kinds)
        case {"type": "array", **rest}:
            return f"[{_kind(rest.get('items'), root, depth + 1)}]"
        case {"type": "object"}:
            return f"{{{_fields(schema, root, depth)}}}"
        case {"type": [*kinds]}:
            return "|".join(str(kind) for kind in kinds)
        case {"type": str(kind)}:
            return kind
    return "..."


def _note(schema: object) -> str:
    description = schema.get("description") if isinstance(schema, Mapping) else None
    return f" ({description})" if isinstance(description, str) and description else ""


def _found(root: Mapping[str, object], pointer: str) -> object:
    value: object = root
    for step in pointer.removeprefix("#").split("/")[1:]:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@functools.cache
def _text() -> string.Template:
    return string.Template((resources.files("pawl.models") / "prompts" / "local_tools.md").read_text("utf-8").strip())


_OPENING = re.compile(r'\s*\{\s*"say"\s*:\s*"')
_WHOLE = re.compile(r'(?:[^"\\]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


class Saying:
    """Collects what is said, up to the first stop sequence."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(sequence for sequence in stop if sequence)
        self._waiting = ""
        self._shown: list[str] = []
        self._scrubber = Scrubber()
        self._is_open = self._is_over = False

    @property
    def text(self) -> str:
        return "".join(self._shown)

    def piece(self, json_piece: str) -> str:
        """The text that can be shown after another piece of the JSON."""
        if self._is_over:
            return ""
        self._waiting += json_piece
        if not self._is_open:
            opening = _OPENING.match(self._waiting)
            if opening is None:
                return ""
            self._is_open = True
            self._waiting = self._waiting[opening.end() :]
        whole = _WHOLE.match(self._waiting)
        end = whole.end() if whole is not None else 0
        said, self._waiting = self._waiting[:end], self._waiting[end:]
        self._is_over = self._waiting.startswith('"')
        return self._show(self._scrubber.piece(json.loads(f'"{said}"', strict=False)))

    def _show(self, said: str) -> str:
        before = self.text
        kept, cut = up_to(before + said, self._stop)
        if cut:
            self._is_over = True
            said = kept[len(before) :]
        if said:
            self._shown.append(said)
        return said


def up_to(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop sequence, and whether there is one."""
    ends = [text.index(sequence) for sequence in stop if sequence and sequence in text]
    return (text[: min(ends)], True) if ends else (text, False)


_ARGUMENTS = re.compile(rf'"{ARGUMENTS}"\s*:\s*')


class ConstrainedTools:
    """Fits `Model`, over one that answers by `answer_schema`. A request without tools and files that were read goes
    through as it is."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        if not request.tools and (request.answer_schema is not None or not _files_read(request.messages)):
            yield from self.model.stream(request, cancel=cancel)
            return
        form = Form.of(request)
        saying = Saying(request.sampling.stop)
        with closing(self.model.stream(form.filled(request), cancel=cancel)) as events:
            for event in events:
                match event:
                    case TextDelta(text=text):
                        if shown := saying.piece(text):
                            yield TextDelta(shown)
                    case Answered(answer=answer):
                        read = _read(request, answer, saying)
                        if rest := _rest(read.text, saying.text):
                            yield TextDelta(rest)
                        yield Answered(read)
                    case Retrying() | FellBack():
                        saying = Saying(request.sampling.stop)
                        yield event
                    case _:
                        yield event


def _read(request: Request, answer: ModelResponse, saying: Saying) -> ModelResponse:
    """The answer as if the model had tool calls. One that did not end properly has none, however whole it looks."""
    if answer.stop is not StopReason.END:
        return replace(answer, text=saying.text, calls=())
    value, mistake = parsed_arguments(answer.text)
    value = {} if value is None else value
    if request.answer_schema is None and isinstance(text := value.get(SAY), str):
        kept, is_cut = up_to(cited(text, value.get(PLACES), request.messages), request.sampling.stop)
        return replace(answer, text=kept, stop=StopReason.SEQUENCE if is_cut else StopReason.END, calls=())
    if request.answer_schema is not None and ANSWER in value:
        return replace(answer, text=_json(value[ANSWER]), calls=())
    call = _call(request, value.get(CALL), answer.text)
    if call is None:
        raise AnswerUnusable(
            f"the answer of {request.model!r} is neither a call of an offered tool nor a last word"
            + (f": {mistake}" if mistake else ""),
            advice="the model does not keep to the schema of its answers; use another one",
        )
    return replace(answer, text="", stop=StopReason.CALLS, calls=(call,))


def _call(request: Request, given: object, text: str) -> ToolCall | None:
    if not isinstance(given, dict):
        return None
    name, arguments = given.get(TOOL), given.get(ARGUMENTS)
    if not isinstance(arguments, dict) or name not in [offer.name for offer in request.tools]:
        return None
    return ToolCall(
        id=f"call_{next_number(request.messages)}", name=str(name), arguments=arguments, raw=_raw_arguments(text)
    )


def _raw_arguments(text: str) -> str:
    """The arguments as the model wrote them."""
    found = _ARGUMENTS.search(text)
    if found is None:
        return ""
    _, end = json.JSONDecoder().raw_decode(text, found.end())
    return scrubbed(text[found.end() : end])


def _rest(whole: str, shown: str) -> str:
    return whole.removeprefix(shown) if whole.startswith(shown) else ""
