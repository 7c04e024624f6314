"""A secret that goes through everything that is said, kept and reported is found nowhere afterwards."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pawl.core import redact
from pawl.core.change import EMPTY, EntryKind
from pawl.core.dialogue import (
    Message,
    ModelResponse,
    Request,
    Sampling,
    Speaker,
    StopReason,
    Thought,
    ToolAnswer,
    ToolCall,
    Usage,
    tool_answers,
    user,
)
from pawl.core.errors import PawlError
from pawl.core.redact import Redactor, redacted, redacted_body, redacted_request, register
from pawl.core.run import Mode, Reasoning, RequestRecord, RoleName, Stage
from pawl.models.telemetry import Telemetry, _headers
from pawl.settings.config import environment_of
from pawl.workspace.project import Project

pytestmark = pytest.mark.spec("B13")

CANARY = "Zq8vT3xLm2RpW9ydKc5B"
HARMLESS = "these words are no secret"

SHAPES = {
    "an assignment": f"API_KEY={CANARY}",
    "a key of a known kind": f"it is sk-proj-{CANARY}, I think",
    "JSON": json.dumps({"a": {"client_secret": CANARY}}),
    "JSON in JSON": json.dumps(json.dumps({"token": CANARY})),
    "a header": f"curl -H 'Authorization: Bearer {CANARY}' https://host",
    "a connection": f"postgres://app:{CANARY}@db/x",
    "an option": f"tool --password {CANARY} --verbose",
    "a private key": f"-----BEGIN PRIVATE KEY-----\n{CANARY}{CANARY}\n-----END PRIVATE KEY-----",
    "what is configured": f"nothing names it: {CANARY}",
}


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    own = Redactor()
    monkeypatch.setattr(redact, "PROCESS", own)
    return own


@pytest.fixture(params=SHAPES)
def said(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A text with the canary in it; the key that is configured comes from a file at the entry."""
    if request.param == "what is configured":
        (tmp_path / "user.env").write_text(f"SOME_API_KEY='{CANARY}'\n")
        register(environment_of({}, user=tmp_path / "user.env")["SOME_API_KEY"])
    return f"{HARMLESS}; {SHAPES[request.param]}"


class Collector:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(self.provider.get_tracer("pawl"), contents=True)

    @property
    def text(self) -> str:
        return "".join(span.to_json() for span in self.exporter.get_finished_spans())


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.provider.shutdown()


def dialogue(said: str) -> tuple[Message, ...]:
    """The canary as the user, a model and a tool say it."""
    arguments = {"text": said, "deep": [{"inner": said}]}
    call = ToolCall(id="1", name="run", arguments=arguments, raw=json.dumps(arguments))
    broken = ToolCall(id="2", name="run", arguments=None, raw=said, mistake=f"not JSON: {said}")
    return (
        user(said),
        Message(speaker=Speaker.ASSISTANT, text=said, thoughts=(Thought(text=said),), calls=(call, broken)),
        tool_answers(ToolAnswer(call="1", name="run", text=said), ToolAnswer(call="2", name="run", text=said)),
    )


def record(said: str) -> RequestRecord:
    return RequestRecord(
        conversation="c1",
        run="r1",
        mode=Mode.AGENT,
        stage=Stage.ACT,
        role=RoleName.WORKER,
        model=f"custom/{said}",
        reasoning=Reasoning.ON,
        tools=(said,),
        input_tokens=1,
        output_tokens=1,
        cached_tokens=0,
        estimated=False,
        cost=Decimal(0),
        seconds=1.0,
        first_token_seconds=None,
        attempts=1,
        ended="end",
    )


def kept(folder: Path) -> bytes:
    """Every byte of every file: the state file, its log, and whatever else there is."""
    return b"\n".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def use(shop: Project, said: str) -> None:
    """Everything that is stored of a talk."""
    for message in dialogue(said):
        shop.store.transcripts.append(shop.workspace, "c1", message, run="r1", reasoning=said)
    shop.store.requests.record(shop.workspace, record(said))
    shop.note("failed", {"message": str(PawlError(said)), "advice": said, "list": [said]})
    shop.store.journal.record(shop.new_entry(EntryKind.EDIT, said, said), EMPTY)


def test_nothing_of_it_is_in_the_state(site, said: str) -> None:
    with site.open() as shop:
        use(shop, said)
        # The log of the state file is still there, and with it every page that was written.
        while_open = kept(site.config.state)
    for found in (while_open, kept(site.config.state)):
        assert HARMLESS.encode() in found
        assert CANARY.encode() not in found


def test_nothing_of_it_is_sent(said: str) -> None:
    messages = dialogue(said)
    request = Request(model="p/m", system=(said,), messages=messages)
    sent = repr(redacted_request(request))
    assert HARMLESS in sent
    assert CANARY not in sent
    assert CANARY in repr(request)


def test_nothing_of_it_is_exported(collector: Collector, said: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = ModelResponse(text=said, stop=StopReason.END, usage=Usage(), model="p/m", calls=dialogue(said)[1].calls)
    request = Request(model="p/m", system=(said,), messages=dialogue(said), sampling=Sampling(stop=(said,)))
    collector.telemetry.record(record(said), request, answer)
    collector.telemetry.record(replace(record(said), ended=said))
    assert HARMLESS in collector.text
    assert CANARY not in collector.text
    assert CANARY not in caplog.text


def test_nothing_of_it_is_in_what_is_reported_of_an_error(said: str) -> None:
    try:
        try:
            raise KeyError(said)
        except KeyError as error:
            raise PawlError(said, advice=said) from error
    except PawlError as error:
        report = redacted("".join(traceback.format_exception(error)))
        body = redacted_body({"message": error.message, "advice": error.advice, "args": list(error.args)})
    for text in (report, json.dumps(body)):
        assert HARMLESS in text
        assert CANARY not in text


def test_a_key_for_a_collector_is_a_secret_like_any_other() -> None:
    assert _headers({"OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{CANARY},x-team=a"}) == {
        "authorization": f"Bearer {CANARY}",
        "x-team": "a",
    }
    assert CANARY not in redacted(f"nothing names it: {CANARY}")
