"""Every request of a run, written down: in the request log, and as OpenTelemetry spans where they are asked for.

Spans have the attribute names of the GenAI conventions. They are on when the program around Pawl has set up a tracer
provider, or when the environment names an OTLP endpoint and the extra `telemetry` is installed. A run without them
imports nothing of OpenTelemetry. Spans hold figures and names; what was said is in them only when the environment asks
for it, and never with its secrets.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pawl.core import __version__
from pawl.core.dialogue import Message, ModelResponse, Request, StopReason
from pawl.core.events import Metered, RequestAnswered
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted, redacted_message, register
from pawl.core.run import RequestRecord
from pawl.models.ledger import Charge
from pawl.models.router import Models, RoutedModel
from pawl.settings.installation import with_extra
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer


Attributes = dict[str, Any]

_PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
"""Where the conventions have another name than Pawl."""
_EXPORT_SECONDS = 3.0
"""The end of a run waits for the last spans, not for a collector that is gone."""
_MISSING = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages that export are missing: install them with "
    "{}, or unset the variable"
)


@dataclass(slots=True)
class Telemetry:
    """Where spans go: nowhere, unless `open` found a reason."""

    tracer: Tracer | None = None
    contents: bool = False
    """Whether what was said is part of the spans."""
    notice: str = ""
    """A warning for the user, such as that the extra is missing."""
    clock: Callable[[], int] = time.time_ns
    provider: TracerProvider | None = field(default=None, repr=False)
    """Pawl's own, to be closed with it."""

    @classmethod
    def open(cls, environment: Mapping[str, str]) -> Telemetry:
        """As the variables say: those of OpenTelemetry's SDK, and the one of its GenAI instrumentations."""
        captured = environment.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower()
        contents = captured in ("true", "1", "span_only", "span_and_event")
        if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return cls()
        tracer = _tracer_around()
        if tracer is not None:
            return cls(tracer, contents)
        endpoint = _endpoint(environment)
        if not endpoint or environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
            return cls()
        try:
            provider = _exporting(endpoint, environment)
        except ImportError:
            return cls(notice=_MISSING.format(with_extra("telemetry")))
        return cls(provider.get_tracer("pawl", __version__), contents, provider=provider)

    def close(self) -> None:
        """Sends what is left, for as long as one export may take."""
        if self.provider is not None:
            self.provider.shutdown()

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def span(self, name: str, attributes: Attributes, start: datetime | None = None, trace: str = "") -> Iterator[None]:
        """Spans that begin inside are below this one; it may have begun earlier, below one of another process."""
        if self.tracer is None:
            yield
            return
        from opentelemetry.trace import use_span

        above = _propagator().extract({"traceparent": trace}) if trace else None
        begun = None if start is None else int(start.timestamp() * 1e9)
        told = {key: _text(value) if isinstance(value, str) else value for key, value in attributes.items()}
        span = self.tracer.start_span(name, context=above, attributes=told, start_time=begun)
        with use_span(span, end_on_exit=True):
            yield

    def trace(self) -> str:
        """Where a span of another process is to be put to be below the present one, as W3C's `traceparent`."""
        carrier: dict[str, str] = {}
        if self.tracer is not None:
            _propagator().inject(carrier)
        return carrier.get("traceparent", "")

    def record(
        self, record: RequestRecord, request: Request | None = None, answer: ModelResponse | None = None
    ) -> None:
        """A span for a request that has ended; what was asked and answered goes with it as far as it is known."""
        if self.tracer is None:
            return
        from opentelemetry.trace import SpanKind

        attributes = _of_record(record)
        if request is not None:
            attributes |= _of_request(request)
        if self.contents:
            attributes |= _contents(request, answer)
        end = self.clock()
        start, name = end - int(record.seconds * 1e9), f"chat {attributes['gen_ai.request.model']}"
        span = self.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, start_time=start)
        _mark_failure(span, record.ended)
        span.end(end)


def _propagator() -> TextMapPropagator:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()


def _tracer_around() -> Tracer | None:
    """The tracer of a program that has set one up; it has paid for the import."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("pawl", __version__)


def _endpoint(environment: Mapping[str, str]) -> str:
    """Where traces go; the general variable is an address to which the path is added."""
    own = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    general = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return own or (f"{general.rstrip('/')}/v1/traces" if general else "")


def _exporting(endpoint: str, environment: Mapping[str, str]) -> TracerProvider:
    """A provider of Pawl's own; `ImportError` without the extra."""
    import importlib
    import logging

    exporters = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # What it says about a collector that is gone belongs to no terminal.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    exporter = exporters.OTLPSpanExporter(
        endpoint=endpoint, headers=_headers(environment), timeout=_seconds(environment)
    )
    name = environment.get("OTEL_SERVICE_NAME") or "pawl"
    provider = TracerProvider(resource=Resource.create({"service.name": name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers for the collector; they hold its key, which is a secret from now on."""
    from urllib.parse import unquote

    both = ",".join(environment.get(f"OTEL_EXPORTER_OTLP_{kind}HEADERS", "") for kind in ("", "TRACES_"))
    pairs = (pair.partition("=") for pair in both.split(",") if "=" in pair)
    headers = {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs}
    for value in headers.values():
        register(value, *value.split())
    return headers


def _seconds(environment: Mapping[str, str]) -> float:
    try:
        return float(environment.get("OTEL_EXPORTER_OTLP_TIMEOUT", ""))
    except ValueError:
        return _EXPORT_SECONDS


def _mark_failure(span: Span, ended: str) -> None:
    """An error is told by its type alone."""
    if ended in tuple(StopReason):
        return
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", _text(ended))
    span.set_status(Status(StatusCode.ERROR))


def _parts(model: str) -> tuple[str, str]:
    """Provider and name. Of a file only its own name: where it is says who the user is."""
    for kind in ("local", "scripted"):
        if model.startswith(f"{kind}:"):
            return kind, PurePath(model[len(kind) + 1 :]).name
    provider, _, name = model.partition("/")
    return provider, name or provider


def _of_request(request: Request) -> Attributes:
    sampling = request.sampling
    attributes: Attributes = {
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.max_tokens": sampling.max_output,
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text" if request.answer_schema is None else "json",
    }
    if sampling.stop:
        attributes["gen_ai.request.stop_sequences"] = [_text(one) for one in sampling.stop]
    if sampling.seed is not None:
        attributes["gen_ai.request.seed"] = sampling.seed
    return attributes


def _of_record(record: RequestRecord) -> Attributes:
    provider, name = _parts(record.model)
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _text(_PROVIDERS.get(provider, provider)),
        "gen_ai.request.model": _text(name),
        "gen_ai.conversation.id": _text(record.conversation),
        "gen_ai.response.model": _text(name),
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": record.cached_tokens,
        "pawl.run": _text(record.run),
        "pawl.mode": record.mode.value,
        "pawl.reasoning": record.reasoning.value,
        "pawl.stage": record.stage.value,
        "pawl.role": record.role,
        "pawl.tools": len(record.tools),
        "pawl.attempts": record.attempts,
        "pawl.usage.estimated": record.estimated,
    }
    if record.ended in tuple(StopReason):
        attributes["gen_ai.response.finish_reasons"] = [record.ended]
    if record.cost is not None:
        attributes["pawl.cost_usd"] = float(record.cost)
    if record.first_token_seconds is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = record.first_token_seconds
    return attributes


def _contents(request: Request | None, answer: ModelResponse | None) -> Attributes:
    attributes: Attributes = {}
    if request is not None:
        system = [{"type": "text", "content": redacted(part)} for part in request.system]
        messages = [_as_message(redacted_message(message)) for message in request.messages]
        attributes["gen_ai.system_instructions"] = json.dumps(system)
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    if answer is not None:
        said = {**_as_message(redacted_message(answer.message)), "finish_reason": answer.stop.value}
        attributes["gen_ai.output.messages"] = json.dumps([said])
    return attributes


def _as_message(message: Message) -> dict[str, object]:
    parts: list[dict[str, object]] = []
    parts += ({"type": "reasoning", "content": thought.text} for thought in message.thoughts)
    parts += ({"type": "text", "content": message.text},) if message.text else ()
    parts += (
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments and dict(call.arguments)}
        for call in message.calls
    )
    parts += ({"type": "tool_call_response", "id": answer.call, "response": answer.text} for answer in message.answers)
    return {"role": message.speaker.value, "parts": parts}


def _text(text: str) -> str:
    """Without secrets, and as UTF-8 can hold it: one letter that it cannot would lose all spans of a batch."""
    return redacted(text).encode("utf-8", "backslashreplace").decode("utf-8")


class RequestBook:
    """Writes down what a conversation asked of models, and what it came to."""

    def __init__(self, shop: Project, model: RoutedModel, telemetry: Telemetry) -> None:
        self._shop = shop
        self._model = model
        self._telemetry = telemetry

    def record(self, record: RequestRecord) -> None:
        """Writes one line for each model that was asked; the router knows what the failed ones cost."""
        charges = self._model.charged
        for charge in charges[:-1]:
            self._write(_charged(record, charge), None)
        self._write(_charged(record, charges[-1]) if charges else record, self._model.answer)

    def _write(self, record: RequestRecord, answer: ModelResponse | None) -> None:
        self._shop.store.requests.record(self._shop.workspace, record)
        self._telemetry.record(record, self._model.request, answer)


def _charged(record: RequestRecord, charge: Charge) -> RequestRecord:
    unused = charge.usage.input == 0 and charge.usage.output == 0
    return replace(
        record,
        model=charge.model,
        input_tokens=charge.usage.input,
        output_tokens=charge.usage.output,
        cached_tokens=charge.usage.cached,
        estimated=charge.usage.estimated,
        cost=Decimal(0) if unused and charge.cost is None else charge.cost,
        attempts=charge.attempts,
        ended=charge.ended,
    )


def metered(models: Models, answered: RequestAnswered) -> Metered:
    """The figures of the whole run, of which this is the latest answer."""
    spent = models.router.ledger.spent
    return Metered(
        context_tokens=answered.usage.input + answered.usage.output,
        context_window=models.can(answered.model).context,
        requests=spent.requests,
        input_tokens=spent.input,
        output_tokens=spent.output,
        cached_tokens=spent.cached,
        cost=None if spent.unpriced_tokens else spent.money,
    )
