"""Spans say what a request was and what it cost, in the words of the conventions, and nothing that was said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opened import Site
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.trace import SpanKind, StatusCode

from pawl.agent.queue.job_queue import JobWish, QueueSettings, add
from pawl.agent.queue.worker import QueueWorker
from pawl.agent.session import Session
from pawl.core import redact
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
from pawl.core.redact import MARK, Redactor
from pawl.core.run import Intent, Mode, Reasoning, RequestRecord, RoleName, RunRequest, Stage
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken

pytestmark = pytest.mark.spec("C15")

CANARY = "Zq8vT3xLm2RpW9ydKc5B"
REQUEST = Request(
    model="gemini/some-model",
    system=("Be brief.",),
    messages=(user("What is this?"),),
    sampling=Sampling(temperature=0.5, top_p=0.9, max_output=100, stop=("END",), seed=7),
)
RECORD = RequestRecord(
    conversation="c1",
    run="r1",
    mode=Mode.CHAT,
    stage=Stage.ACT,
    role=RoleName.ARTISAN,
    model="gemini/some-model",
    reasoning=Reasoning.OFF,
    tools=("read", "search"),
    input_tokens=1200,
    output_tokens=300,
    cached_tokens=1000,
    estimated=False,
    cost=Decimal("0.25"),
    seconds=1.5,
    first_token_seconds=0.5,
    attempts=2,
    ended="end",
)
OF_MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "gcp.gemini",
    "gen_ai.request.model": "some-model",
}
OF_RECORD = {
    "gen_ai.conversation.id": "c1",
    "gen_ai.response.model": "some-model",
    "gen_ai.response.finish_reasons": ("end",),
    "gen_ai.response.time_to_first_chunk": 0.5,
    "gen_ai.usage.input_tokens": 1200,
    "gen_ai.usage.output_tokens": 300,
    "gen_ai.usage.cache_read.input_tokens": 1000,
    "pawl.run": "r1",
    "pawl.mode": "chat",
    "pawl.reasoning": "off",
    "pawl.stage": "act",
    "pawl.role": "artisan",
    "pawl.tools": 2,
    "pawl.attempts": 2,
    "pawl.usage.estimated": False,
    "pawl.cost_usd": 0.25,
}


class Collector:
    """Spans that are kept in memory."""

    def __init__(self, *, contents: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(self.provider.get_tracer("pawl"), contents, clock=lambda: 10_000_000_000)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.provider.shutdown()


def test_a_request_that_has_ended_becomes_a_span(collector: Collector) -> None:
    collector.telemetry.record(RECORD)
    (span,) = collector.spans
    assert (span.name, span.kind, span.status.status_code) == ("chat some-model", SpanKind.CLIENT, StatusCode.UNSET)
    assert (span.start_time, span.end_time) == (8_500_000_000, 10_000_000_000)
    assert dict(span.attributes or {}) == {**OF_MODEL, **OF_RECORD}


def test_a_span_holds_what_was_asked_and_what_came_of_it(collector: Collector) -> None:
    collector.telemetry.record(RECORD, REQUEST)
    (span,) = collector.spans
    assert dict(span.attributes or {}) == {
        **OF_MODEL,
        **OF_RECORD,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 7,
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text",
    }


def test_the_names_are_those_of_the_conventions(collector: Collector) -> None:
    contents = Collector(contents=True)
    contents.telemetry.record(RECORD, REQUEST, an_answer("Yes."))
    used = {name for name in contents.spans[0].attributes or {} if name.startswith("gen_ai.")}
    known = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")}
    assert used
    assert used <= known


@pytest.mark.parametrize("ended", ["rate_limited", "cancelled", "budget_exceeded"])
def test_a_request_that_failed_is_told_by_the_type_of_its_error(collector: Collector, ended: str) -> None:
    collector.telemetry.record(replace(RECORD, ended=ended, cost=None, first_token_seconds=None))
    (span,) = collector.spans
    attributes = dict(span.attributes or {})
    assert span.status.status_code is StatusCode.ERROR
    assert attributes["error.type"] == ended
    assert "gen_ai.response.finish_reasons" not in attributes
    assert "pawl.cost_usd" not in attributes


def an_answer(text: str) -> ModelResponse:
    return ModelResponse(text=text, stop=StopReason.END, usage=Usage(), model="gemini/some-model")


def test_what_was_said_is_not_in_a_span(collector: Collector) -> None:
    said = replace(REQUEST, messages=(user("these very words"),), system=("those very words",))
    collector.telemetry.record(RECORD, said, an_answer("more very words"))
    assert "very words" not in collector.spans[0].to_json()


@pytest.mark.spec("B13")
def test_what_was_said_is_in_a_span_when_asked_for_and_without_secrets() -> None:
    collector = Collector(contents=True)
    call = ToolCall(id="1", name="read", arguments={"path": "a", "password": CANARY})
    thought = Thought(text=f"token={CANARY}", signature="opaque")
    asked = Message(speaker=Speaker.ASSISTANT, text="I look.", calls=(call,), thoughts=(thought,))
    answered = tool_answers(ToolAnswer(call="1", name="read", text=f"token = '{CANARY}'"))
    request = replace(REQUEST, system=(f"API_KEY={CANARY}",), messages=(user("odd \ud800"), asked, answered))
    collector.telemetry.record(RECORD, request, an_answer(f"PASSWORD={CANARY}"))
    (span,) = collector.spans
    assert CANARY not in span.to_json()
    attributes = dict(span.attributes or {})
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "odd \ud800"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": f"token={MARK}"},
                {"type": "text", "content": "I look."},
                {"type": "tool_call", "id": "1", "name": "read", "arguments": {"path": "a", "password": MARK}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": f"token = '{MARK}'"}]},
    ]
    assert json.loads(attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": f"PASSWORD={MARK}"}], "finish_reason": "end"}
    ]


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openrouter/openai/gpt-5", "openrouter", "openai/gpt-5"),
        ("local:/home/somebody/models/small.gguf", "local", "small.gguf"),
        ("scripted:turns.toml", "scripted", "turns.toml"),
        ("odd\ud800/name", "odd\\ud800", "name"),
    ],
)
def test_a_model_is_named_without_the_place_of_its_file(
    collector: Collector, model: str, provider: str, name: str
) -> None:
    collector.telemetry.record(replace(RECORD, model=model))
    attributes = dict(collector.spans[0].attributes or {})
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == (provider, name)
    assert attributes["gen_ai.response.model"] == name


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"},
    ],
)
def test_it_is_off_unless_asked_for(environment: dict[str, str]) -> None:
    with Telemetry.open(environment) as telemetry:
        assert (telemetry.tracer, telemetry.notice) == (None, "")
        telemetry.record(RECORD, REQUEST, an_answer("Yes."))


def test_a_run_without_it_imports_nothing_of_it() -> None:
    program = """
import sys
from pawl.agent.queue.job_queue import JobWish, QueueSettings, add
from pawl.agent.queue.worker import QueueWorker
from pawl.agent.session import Session
from pawl.models.telemetry import Telemetry
with Telemetry.open({}) as telemetry:
    pass
sys.exit(any(name.startswith("opentelemetry") for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_program_around_decides_where_spans_go(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", collector.provider)
    with Telemetry.open({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}) as telemetry:
        assert telemetry.contents
        telemetry.record(RECORD)
    assert [span.name for span in collector.spans] == ["chat some-model"]


def test_a_missing_extra_is_said_and_nothing_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with Telemetry.open({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}) as telemetry:
        telemetry.record(RECORD)
    assert "[telemetry]'" in telemetry.notice


@pytest.mark.spec("B13")
def test_spans_reach_a_collector_with_the_key_that_the_user_gave_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="the extra 'telemetry' is not installed"
    )
    monkeypatch.setattr(redact, "PROCESS", Redactor())
    seen: list[tuple[str, str | None, bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Authorization"], body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}/",
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{CANARY},x-team=a",
        }
        with Telemetry.open(environment) as telemetry:
            telemetry.record(replace(RECORD, model=f"gemini/{CANARY}"))
        server.shutdown()
        thread.join()
    ((path, authorization, body),) = seen
    assert (path, authorization) == ("/v1/traces", f"Bearer {CANARY}")
    assert b"gen_ai.request.model" in body
    assert CANARY.encode() not in body


def listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contents: bool) -> tuple[Collector, str]:
    """A collector of what is told, and a model that says hello."""
    collector = Collector(contents=contents)
    monkeypatch.setattr(Telemetry, "open", lambda environment: collector.telemetry)
    script = tmp_path / "turns.toml"
    script.write_text('[[turn]]\nanswer = "It says hello."\n')
    return collector, f"scripted:{script}"


@pytest.mark.spec("B13")
def test_a_question_leaves_a_span_with_what_was_said_where_that_is_asked_for(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, model = listening(tmp_path, monkeypatch, contents=True)
    with site.open() as shop:
        text = f"What is this? My token={CANARY}"
        Session(shop).do(RunRequest(text=text, mode=Mode.CHAT, intent=Intent.READ, model=model))
    (span,) = collector.spans
    attributes = dict(span.attributes or {})
    assert "What is this?" in attributes["gen_ai.input.messages"]
    assert "It says hello." in attributes["gen_ai.output.messages"]
    assert attributes["gen_ai.request.temperature"] == 0.1
    assert CANARY not in span.to_json()


@pytest.mark.spec("E2")
def test_a_role_of_the_users_own_keeps_its_temperature_outside_of_tiers(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, model = listening(tmp_path, monkeypatch, contents=False)
    with site.open() as shop:
        roles = shop.config.file.parent / "roles"
        roles.mkdir(parents=True, exist_ok=True)
        words = 'description = "d"\nprompt = "roles/artisan"\ntools = ["file_read"]\ntemperature = 0.4\n'
        (roles / "artisan.toml").write_text(words)
        Session(shop).do(RunRequest(text="What is it?", mode=Mode.CHAT, model=model))
    assert [dict(span.attributes or {})["gen_ai.request.temperature"] for span in collector.spans] == [0.4]


@pytest.mark.spec("F9")
def test_the_requests_of_a_job_are_below_its_run_its_worker_and_its_time_in_the_queue(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector, model = listening(tmp_path, monkeypatch, contents=False)
    with site.open() as shop:
        order = RunRequest(text="", mode=Mode.CHAT, intent=Intent.READ, model=model)
        add(shop, shop.store.jobs, JobWish(order=order), ["What is this?"])
        worker = QueueWorker(config=shop.config, queue=shop.store.jobs, stop=CancelToken(), settings=QueueSettings())
        worker.work(drains=True)
        assert shop.store.jobs.get(1).standing == "done"
    names = {span.context.span_id: span.name for span in collector.spans}
    above = {span.name: names.get(span.parent.span_id) if span.parent else None for span in collector.spans}
    assert len({span.context.trace_id for span in collector.spans}) == 1
    assert above == {
        "queue add": None,
        "queue job": "queue add",
        "worker attempt": "queue job",
        "run": "worker attempt",
        "chat turns.toml": "run",
    }
