"""Tools and schemas for models that know neither: asked for in words, read from blocks in the answer.

A model's text is read this way because the protocol was chosen for that model; from any other, the same text is text.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from importlib import resources

from pawl.core.dialogue import (
    Answer,
    Answered,
    FellBack,
    ModelEvent,
    Request,
    Retrying,
    Stop,
    TextDelta,
    ToolOffer,
)
from pawl.core.ports import Cancel, Model
from pawl.models.blocks import BARE, EDIT, FILE, FUNCTION, JSON, TOOL, Block, Prose, Scanner
from pawl.models.calls import next_number
from pawl.models.capabilities import Capabilities, EditBlock, Way
from pawl.models.json_text import objects
from pawl.models.text_calls import Asked, EditTools, as_text, calls_in, numbered

_ENDED = (Stop.END, Stop.CALLS, Stop.SEQUENCE)


class TextProtocol:
    """Fits `ports.Model`, around a model that is sent neither tools nor, where that is text too, schemas."""

    def __init__(self, model: Model, *, tools: Way, schema: Way, edits: EditTools | None = None) -> None:
        self._model = model
        self._tools = tools
        self._schema = schema
        self._edits = edits or EditTools()

    def stream(self, request: Request, *, cancel: Cancel | None = None) -> Generator[ModelEvent, None, None]:
        reader = _Reader(request, self._edits) if self._tools is Way.TEXT and request.tools else None
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
        if self._tools is Way.TEXT:
            edits = self._edits.offered({offer.name for offer in request.tools})
            system += [_tools_text(request.tools, edits)] if request.tools else []
            request = replace(request, messages=as_text(request.messages, self._edits), tools=())
        if self._schema is Way.TEXT and request.answer_schema is not None:
            system.append(f"{_prompt('text_schema')}{_compact(request.answer_schema)}")
            request = replace(request, answer_schema=None)
        return replace(request, system=tuple(system))

    def _by_schema(self, request: Request, answer: Answer) -> Answer:
        """The first JSON object of the answer; if there is none, the text stays for whoever checks it."""
        if self._schema is not Way.TEXT or request.answer_schema is None or answer.calls or answer.stop not in _ENDED:
            return answer
        start, end = next(objects(answer.text), (0, len(answer.text)))
        return replace(answer, text=answer.text[start:end])


def fitted(model: Model, can: Capabilities, edits: EditTools) -> Model:
    """The model as it is, or with the text protocol where its capabilities say so."""
    if can.tools is Way.NATIVE and can.schema is Way.NATIVE:
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

    def read(self, answer: Answer) -> Answer:
        """The answer with its calls. One that was cut off or refused has none, and its text stays as it is."""
        if answer.stop not in _ENDED:
            return answer
        scanner = self._new_scanner()
        prose: list[str] = []
        asked: list[Asked] = []
        for part in (*scanner.feed(answer.text), *scanner.finish()):
            found = self._calls(part)
            if found is None:
                prose.append(part.text if isinstance(part, Prose) else part.source)
            else:
                asked += found
        if not asked:
            return answer
        calls = numbered(asked, next_number(self._request.messages))
        return replace(answer, text="".join(prose).strip(), calls=calls, stop=Stop.CALLS)

    def _new_scanner(self) -> Scanner:
        kinds = {TOOL, JSON, FUNCTION, BARE}
        kinds |= {EDIT} if self._edits.patch else set()
        kinds |= {FILE} if self._edits.file else set()
        return Scanner(kinds)

    def _shown(self, parts: list[Prose | Block]) -> Generator[TextDelta, None, None]:
        for part in parts:
            if isinstance(part, Prose):
                yield TextDelta(part.text)
            elif self._calls(part) is None:
                yield TextDelta(part.source)

    def _calls(self, part: Prose | Block) -> list[Asked] | None:
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
