"""What a failure of a provider is: a typed error, and whether another attempt makes sense."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BrokenHistory,
    ContextTooLong,
    Diverted,
    ModelError,
    ModelTimedOut,
    NotAuthorized,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    UnknownModel,
    Unreachable,
)
from pawl.core.redact import MARK, redacted
from pawl.models.endpoint import Endpoint
from pawl.models.scrub import scrubbed

_LONGEST_QUOTE = 300
_DELAY = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How an attempt failed."""

    error: ModelError
    again: bool = False
    """Another attempt may succeed."""
    wait_seconds: float | None = None
    """What the provider asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    kind: str
    texts: tuple[str, ...]
    statuses: tuple[int, ...] = ()
    unless_wait: bool = False

    def fits(self, status: int, text: str, *, says_wait: bool) -> bool:
        if (self.statuses and status not in self.statuses) or (self.unless_wait and says_wait):
            return False
        return any(known in text for known in self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An error as the provider words it. `status` is 0 for one inside of an answer."""

    status: int
    message: str
    text: str
    """Code, type and message in small letters, for the rules."""
    wait_seconds: float | None = None


@functools.cache
def rules() -> tuple[Rule, ...]:
    parsed = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
    return tuple(
        Rule(
            kind=one["kind"],
            texts=tuple(one["texts"]),
            statuses=tuple(one.get("statuses", ())),
            unless_wait=one.get("unless_wait", False),
        )
        for one in parsed["rule"]
    )


def refused(endpoint: Endpoint, status: int, body: bytes, *, wait_seconds: float | None) -> Fault:
    """The fault that a status and its body describe."""
    said = _said(endpoint, status, body.decode("utf-8", "replace"), wait_seconds)
    return _fault(endpoint, said)


def failed_inside(endpoint: Endpoint, body: object, text: str) -> Fault:
    """The fault that an error inside of an answer describes; `text` is what of the answer had come."""
    said = _said(endpoint, 0, body if isinstance(body, str) else json.dumps(body), None)
    fault = _fault(endpoint, said)
    if isinstance(fault.error, AnswerInterrupted):
        return Fault(error=AnswerInterrupted(fault.error.message, text, advice=fault.error.advice), again=True)
    return fault


def diverted(endpoint: Endpoint, status: int, location: str) -> Fault:
    try:
        to = urlsplit(urljoin(endpoint.base_url, location))
        port = f":{to.port}" if to.port else ""
        # Not the user, the password or the query, which may hold secrets.
        target = f"{to.scheme}://{to.hostname}{port}{to.path}"
    except ValueError:
        target = "an address that cannot be read"
    return Fault(
        error=Diverted(
            f"{endpoint.host!r} sends Pawl on to {quoted(endpoint, target)!r} (status {status}); the key stayed here",
            advice="if that is right, set it as the provider's base_url",
        )
    )


def interrupted(endpoint: Endpoint, why: str, text: str) -> Fault:
    """An answer that did not end properly."""
    return Fault(
        error=AnswerInterrupted(
            f"the answer of {endpoint.model!r} did not end properly: {why}",
            text,
            advice="ask again; nothing of that answer was carried out",
        ),
        again=True,
    )


def unusable(endpoint: Endpoint, why: str) -> Fault:
    return Fault(
        error=AnswerUnusable(
            f"what {endpoint.host!r} sent is no answer: {why}",
            advice="check the provider's base_url, and that no proxy or sign-in page stands in between",
        )
    )


def quoted(endpoint: Endpoint, text: str) -> str:
    """Words of a provider that may be shown: without the key, without other secrets, on one line, not too long."""
    if endpoint.key:
        text = text.replace(endpoint.key, MARK)
    line = " ".join(redacted(scrubbed(text)).split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def _said(endpoint: Endpoint, status: int, body: str, wait_seconds: float | None) -> Said:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        looks_like_page = body.lstrip()[:1] == "<"
        message = "a web page" if looks_like_page else body
        return Said(status=status, message=quoted(endpoint, message), text=body.lower(), wait_seconds=wait_seconds)
    inner = value.get("error", value)
    error: Mapping[str, object] = inner if isinstance(inner, dict) else {"message": inner}
    message = _words(error.get("message")) or _words(value.get("message")) or _words(value.get("detail"))
    code = error.get("code")
    # A provider that stands in between puts what the real one said here.
    raw = error.get("metadata", {})
    words = [message, _words(error.get("type")), _words(code), _words(error.get("status")), _words(raw)]
    if wait_seconds is None:
        wait_seconds = _delay(error.get("details"))
    return Said(
        status=status or (code if isinstance(code, int) and 100 <= code < 600 else 0),
        message=quoted(endpoint, message or " ".join(filter(None, words)) or "no reason given"),
        text=" ".join(words).lower(),
        wait_seconds=wait_seconds,
    )


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _delay(details: object) -> float | None:
    """The wait that Gemini puts into the body."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (match := _DELAY.fullmatch(delay)):
            return float(match[1])
    return None


def _fault(endpoint: Endpoint, said: Said) -> Fault:
    kind = next(
        (rule.kind for rule in rules() if rule.fits(said.status, said.text, says_wait=said.wait_seconds is not None)),
        _kind_of_status(said.status),
    )
    return _make(kind, endpoint, said)


def _kind_of_status(status: int) -> str:
    known = {401: "key", 403: "key", 404: "model", 407: "proxy", 408: "timeout", 409: "overloaded", 425: "overloaded"}
    if status in known or status == 429:
        return known.get(status, "rate_limit")
    if status >= 500:
        return "overloaded"
    if status >= 400:
        return "request"
    return "inside" if status == 0 else "status"


def _make(kind: str, endpoint: Endpoint, said: Said) -> Fault:
    model, who = repr(endpoint.model), repr(endpoint.provider)
    says = f"{said.message} (status {said.status})" if said.status else said.message
    match kind:
        case "rate_limit":
            error: ModelError = RateLimited(
                f"{who} says to wait: {says}", said.wait_seconds, advice="try again later, or use another model"
            )
            return Fault(error=error, again=True, wait_seconds=said.wait_seconds)
        case "overloaded":
            error = Overloaded(f"{who} cannot cope now: {says}", advice="try again in a minute, or use another model")
            return Fault(error=error, again=True, wait_seconds=said.wait_seconds)
        case "timeout":
            return Fault(error=ModelTimedOut(f"{who} gave up waiting: {says}", advice="try again"), again=True)
        case "inside":
            return interrupted(endpoint, f"the provider says {says}", "")
        case "key":
            return Fault(error=NotAuthorized(f"{who} does not accept the key: {says}", advice=key_advice(endpoint)))
    return Fault(error=_final(kind, model, who, says))


def key_advice(endpoint: Endpoint) -> str:
    """What to do about a key that is refused."""
    return f"check that {endpoint.key_name or 'it'} is whole, valid and allowed this model"


def _final(kind: str, model: str, who: str, says: str) -> ModelError:
    """The errors after which another attempt would end the same way."""
    match kind:
        case "quota":
            return QuotaExhausted(
                f"the account with {who} has nothing left: {says}", advice="add credit there, or use another model"
            )
        case "model":
            return UnknownModel(f"{who} has no {model}: {says}", advice="check its name and the provider's base_url")
        case "proxy":
            return Unreachable(f"the proxy wants a password: {says}", advice="put it into HTTPS_PROXY, or set NO_PROXY")
        case "context":
            return ContextTooLong(
                f"the request is too long for {model}: {says}", advice="send less, or use another model"
            )
        case "history":
            return BrokenHistory(f"{model} does not accept the turns so far: {says}", advice="start a new conversation")
        case "too_large":
            return RequestRejected(
                f"the request is larger than {who} takes: {says}", advice="send less of long files and outputs"
            )
        case "status":
            return AnswerUnusable(f"{who} answered with neither an answer nor an error: {says}")
    return RequestRejected(f"{model} refuses the request: {says}", advice="the message says which part of it is wrong")
