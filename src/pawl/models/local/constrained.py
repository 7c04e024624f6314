"""Tool calls from a model that has none of its own but keeps to a schema: every call is one that was offered."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

from pawl.core.dialogue import Answer, Answered, FellBack, ModelEvent, Request, Retrying, Stop, TextDelta, ToolCall
from pawl.core.errors import AnswerUnusable
from pawl.core.ports import Cancel, Model
from pawl.models.calls import next_number, parsed_arguments
from pawl.models.local.form import ANSWER, ARGUMENTS, CALL, PLACES, SAY, TOOL, Form, cited
from pawl.models.local.saying import Saying, up_to
from pawl.models.scrub import scrubbed, scrubbed_value

_ARGUMENTS = re.compile(rf'"{ARGUMENTS}"\s*:\s*')


class ConstrainedTools:
    """Fits `ports.Model`, over one that answers by `answer_schema`. A request without tools goes through as it is."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def stream(self, request: Request, *, cancel: Cancel | None = None) -> Generator[ModelEvent, None, None]:
        if not request.tools:
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


def _read(request: Request, answer: Answer, saying: Saying) -> Answer:
    """The answer as if the model had tool calls. One that did not end properly has none, however whole it looks."""
    if answer.stop is not Stop.END:
        return replace(answer, text=saying.text, calls=())
    value, mistake = parsed_arguments(answer.text)
    value = {} if value is None else value
    if request.answer_schema is None and isinstance(text := value.get(SAY), str):
        kept, is_cut = up_to(cited(scrubbed(text), value.get(PLACES)), request.sampling.stop)
        return replace(answer, text=kept, stop=Stop.SEQUENCE if is_cut else Stop.END, calls=())
    if request.answer_schema is not None and ANSWER in value:
        given = json.dumps(scrubbed_value(value[ANSWER]), ensure_ascii=False)
        return replace(answer, text=given, calls=())
    call = _call(request, value.get(CALL), answer.text)
    if call is None:
        raise AnswerUnusable(
            f"the answer of {request.model!r} is neither a call of an offered tool nor a last word"
            + (f": {mistake}" if mistake else ""),
            advice="the model does not keep to the schema of its answers; use another one",
        )
    return replace(answer, text="", stop=Stop.CALLS, calls=(call,))


def _call(request: Request, given: object, text: str) -> ToolCall | None:
    if not isinstance(given, dict):
        return None
    name, arguments = given.get(TOOL), scrubbed_value(given.get(ARGUMENTS))
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
