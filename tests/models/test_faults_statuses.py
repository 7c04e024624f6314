"""What a provider refuses: each kind has its own error, its own advice, and is tried again only where that helps."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace

import pytest
from models.provider_socket import provider, refusal, streamed, whole
from models.wire_scripts import ASK, KEY, SCRIPTS, Said, Waits, answer_of, asking, events_of, failure_of, patient

from pawl.core import errors
from pawl.core.dialogue import Message, Retrying, Speaker, Thought, user
from pawl.models.failures import Retries, asked_wait, refused
from pawl.models.providers import Endpoint, Wire

OK = streamed(*SCRIPTS[Wire.OPENAI](Said(text=("ok",))))
SLOW_DOWN = {"error": {"message": "slow down", "type": "rate_limit_error"}}
ENDPOINT = Endpoint(wire=Wire.OPENAI, base_url="http://api.test", name="m", provider="test", key=KEY)


def failure(status: str, error: object, *headers: str, wire: Wire = Wire.OPENAI) -> errors.ModelError:
    """The error that ends the request; every attempt is refused the same way."""
    script = refusal(status, error, *headers)
    with provider(*[script] * 6) as server, asking(server, wire) as model:
        raised = failure_of(model)
    raised.requests = len(server.requests)
    return raised


@pytest.mark.fault("P01")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["retry-after: 3"], 3.0),
        (["retry-after: 0.25"], 0.25),
        (["retry-after-ms: 1500", "retry-after: 9"], 1.5),
        (["date: Sun, 15 Nov 2026 10:00:00 GMT", "retry-after: Sun, 15 Nov 2026 10:00:20 GMT"], 20.0),
        (["retry-after: Sun, 15 Nov 1998 10:00:20 GMT"], 0.0),
        (["retry-after: -1"], 0.5),
        (["retry-after: soon"], 0.5),
        (["retry-after: nan"], 0.5),
        ([], 0.5),
    ],
)
def test_p01_the_wait_that_a_provider_asks_for_is_kept(headers: list[str], seconds: float):
    waits = Waits()
    script = refusal("429 Too Many Requests", SLOW_DOWN, *headers)
    with provider(script, OK) as server, asking(server, retries=patient(waits)) as model:
        events = events_of(model)
    assert waits.taken == [seconds]
    why = "'test' says to wait: slow down (status 429)"
    assert events[0] == Retrying(why=why, wait_seconds=seconds, attempt=1)
    assert (events[-1].answer.text, events[-1].answer.attempts) == ("ok", 2)


@pytest.mark.fault("P01")
def test_p01_a_wait_that_is_too_long_is_left_to_the_user():
    error = failure("429 Too Many Requests", SLOW_DOWN, "retry-after: 3600")
    assert isinstance(error, errors.RateLimited)
    assert (error.wait_seconds, error.requests) == (3600.0, 1)


@pytest.mark.fault("P01")
def test_p01_gemini_says_in_the_body_how_long():
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    error = {
        "error": {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota",
            "details": [detail],
        }
    }
    waits = Waits()
    ok = streamed(*SCRIPTS[Wire.GEMINI](Said(text=("ok",))))
    script = refusal("429 Too Many Requests", error)
    with provider(script, ok) as server, asking(server, Wire.GEMINI, retries=patient(waits)) as model:
        answer_of(model)
    assert waits.taken == [34.5]


@pytest.mark.fault("P01")
def test_p01_attempts_and_time_are_bounded():
    waits = Waits()
    script = refusal("429 Too Many Requests", SLOW_DOWN)
    with provider(*[script] * 9) as server, asking(server, retries=patient(waits)) as model:
        assert isinstance(failure_of(model), errors.RateLimited)
    assert waits.taken == [0.5, 1.0, 2.0, 4.0]
    assert len(server.requests) == 5

    now = iter(range(0, 10_000, 50))
    script = refusal("429 Too Many Requests", SLOW_DOWN, "retry-after: 30")
    with provider(*[script] * 9) as server, asking(server, retries=patient(clock=lambda: next(now))) as model:
        assert isinstance(failure_of(model), errors.RateLimited)
    assert len(server.requests) == 3, "no attempt starts later than two minutes after the first failure"


@pytest.mark.fault("P01")
def test_p01_the_wait_is_spread_over_all_of_its_range():
    fault = refused(ENDPOINT, 503, b"", wait_seconds=None)
    shares = iter((0.0, 0.5, 1.0))
    retries = Retries(random=lambda: next(shares))
    assert [retries.pause(3, fault, 0) for _ in range(3)] == [0.0, 1.0, 2.0]


@pytest.mark.fault("P27")
def test_p27_a_wrong_clock_here_does_not_change_the_wait():
    headers = {"retry-after": "Sun, 15 Nov 2026 10:00:20 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}
    assert asked_wait(headers, now=lambda: 0.0) == 20.0


@pytest.mark.fault("P02")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("429 Too Many Requests", {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}),
        ("429 Too Many Requests", {"error": {"type": "usage_limit_reached", "message": "limit"}}),
        ("429 Too Many Requests", {"error": {"message": "You exceeded your current quota, please check your plan"}}),
        ("402 Payment Required", {"error": {"message": "pay"}}),
        ("400 Bad Request", {"type": "error", "error": {"message": "Your credit balance is too low"}}),
    ],
)
def test_p02_an_empty_account_is_not_asked_again(status: str, error: object):
    raised = failure(status, error)
    assert isinstance(raised, errors.QuotaExhausted)
    assert raised.requests == 1
    assert "use another model" in raised.advice


@pytest.mark.fault("P03")
@pytest.mark.parametrize(
    ("wire", "status", "error"),
    [
        (Wire.ANTHROPIC, "529 Overloaded", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        (Wire.OPENAI, "503 Service Unavailable", {"error": "busy"}),
        (Wire.GEMINI, "503 Service Unavailable", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}),
        (Wire.OPENAI, "502 Bad Gateway", "<html>nginx</html>"),
        (Wire.OPENAI, "500 Oops", []),
    ],
)
def test_p03_an_overloaded_provider_is_asked_again(wire: Wire, status: str, error: object):
    ok = streamed(*SCRIPTS[wire](Said(text=("ok",))))
    with provider(refusal(status, error), refusal(status, error), ok) as server, asking(server, wire) as model:
        assert answer_of(model).attempts == 3
    raised = failure(status, error, wire=wire)
    assert isinstance(raised, errors.Overloaded)
    assert raised.requests == 5


@pytest.mark.fault("P05")
def test_p05_an_error_is_told_by_its_words_when_its_type_lies():
    error = {"error": {"type": "invalid_request_error", "message": "Too many requests, slow down"}}
    raised = failure("400 Bad Request", error)
    assert isinstance(raised, errors.RateLimited)
    assert raised.requests == 5


@pytest.mark.fault("P20")
@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192"}},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}},
        {"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens"}},
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds"}},
    ],
)
def test_p20_a_request_that_is_too_long_is_told_as_such(error: object):
    raised = failure("400 Bad Request", error)
    assert isinstance(raised, errors.ContextTooLong)
    assert raised.requests == 1


@pytest.mark.fault("P20")
def test_p20_a_request_above_the_limit_of_a_minute_is_too_long():
    error = {"error": {"code": "rate_limit_exceeded", "message": "Request too large for m on tokens per min (TPM)"}}
    raised = failure("429 Too Many Requests", error)
    assert isinstance(raised, errors.ContextTooLong)
    assert raised.requests == 1


@pytest.mark.fault("P21")
@pytest.mark.parametrize(
    "message",
    [
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: x",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
        "Please ensure that function call turn comes immediately after a user turn",
        "Function call is missing a thought_signature in functionCall parts",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
    ],
)
def test_p21_refused_turns_are_told_as_such(message: str):
    raised = failure("400 Bad Request", {"error": {"type": "invalid_request_error", "message": message}})
    assert isinstance(raised, errors.BrokenHistory)
    assert raised.requests == 1


@pytest.mark.fault("P21")
def test_p21_thoughts_that_are_refused_are_left_out_once():
    error = {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}
    said = Message(speaker=Speaker.ASSISTANT, text="a", thoughts=(Thought(text="t", signature="anthropic:old"),))
    request = replace(ASK, messages=(user("x"), said, user("y")))
    ok = streamed(*SCRIPTS[Wire.ANTHROPIC](Said(text=("ok",))))
    with provider(refusal("400 Bad", error), ok) as server, asking(server, Wire.ANTHROPIC) as model:
        events = events_of(model, request)
    assert isinstance(events[0], Retrying)
    assert events[-1].answer.text == "ok"
    assert [b'"signature":"old"' in seen.body for seen in server.requests] == [True, False]

    with provider(*[refusal("400 Bad", error)] * 3) as server, asking(server, Wire.ANTHROPIC) as model:
        assert isinstance(failure_of(model, request), errors.BrokenHistory)
    assert len(server.requests) == 2


@pytest.mark.fault("P22")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("401 Unauthorized", {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
        ("403 Forbidden", {"error": {"message": f"key {KEY} may not", "type": "permission_error"}}),
        ("400 Bad Request", {"error": {"status": "INVALID_ARGUMENT", "message": f"API key not valid {KEY}"}}),
        ("401 Unauthorized", f"OAuth token has expired {KEY}"),
    ],
)
def test_p22_a_key_that_is_not_accepted_ends_it_and_is_not_shown(status: str, error: object):
    raised = failure(status, error)
    assert isinstance(raised, errors.NotAuthorized)
    assert raised.requests == 1
    shown = "".join(traceback.format_exception(raised)) + repr(raised) + raised.advice
    assert KEY not in shown
    assert raised.__context__ is None and raised.__cause__ is None, "no request with its key hangs on the error"


@pytest.mark.fault("P22")
def test_p22_a_key_that_is_revoked_in_the_middle_of_a_run_ends_it():
    error = {"error": {"message": "invalid x-api-key", "type": "authentication_error"}}
    with provider(OK, refusal("401 Unauthorized", error)) as server, asking(server) as model:
        answer_of(model)
        assert isinstance(failure_of(model), errors.NotAuthorized)


@pytest.mark.fault("P22")
def test_p22_a_key_is_hidden_wherever_the_words_are_cut():
    words = "x " * 145 + KEY
    error = refused(replace(ENDPOINT, key="plain-key-without-a-pattern"), 400, words.encode(), wait_seconds=None).error
    assert "sk-canary" not in error.message
    words = "x " * 145 + "plain-key-without-a-pattern"
    error = refused(replace(ENDPOINT, key="plain-key-without-a-pattern"), 400, words.encode(), wait_seconds=None).error
    assert "plain-key" not in error.message


@pytest.mark.fault("P23")
def test_p23_a_model_that_is_gone_is_told_as_such():
    raised = failure("404 Not Found", {"error": {"message": "The model `m` does not exist"}})
    assert isinstance(raised, errors.UnknownModel)
    assert "'test/m'" in str(raised)
    assert raised.requests == 1


@pytest.mark.fault("P23")
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
@pytest.mark.parametrize("wire", Wire)
def test_p23_the_key_does_not_follow_a_redirect(status: str, wire: Wire):
    with provider(OK) as elsewhere:
        location = f"location: {elsewhere.url.replace('127.0.0.1', 'localhost')}/v1/x?key={KEY}"
        with provider([whole(b"", status=status, headers=[location])]) as server, asking(server, wire) as model:
            raised = failure_of(model)
        assert elsewhere.connections == 0
    assert isinstance(raised, errors.Diverted)
    assert f"'http://localhost:{elsewhere.port}/v1/x'" in str(raised)
    assert KEY not in str(raised) + raised.advice
    assert len(server.requests) == 1


@pytest.mark.fault("P31")
def test_p31_a_request_that_is_too_large_is_told_as_such():
    raised = failure("413 Payload Too Large", {"error": {"message": "Request size exceeds 32 MB"}})
    assert type(raised) is errors.RequestRejected
    assert raised.requests == 1
    assert "send less" in raised.advice


def test_any_other_refusal_says_why_and_is_final():
    raised = failure("400 Bad Request", {"error": {"message": "temperature must be 1"}})
    assert type(raised) is errors.RequestRejected
    assert "temperature must be 1 (status 400)" in str(raised)
    assert raised.requests == 1


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"[[]]", b'"x"', b'{"error": null}', b'{"error": [1]}', b"\xff\xfe", b"[" * 50_000]
)
def test_an_error_that_makes_no_sense_is_still_an_error(body: bytes):
    assert isinstance(refused(ENDPOINT, 400, body, wait_seconds=None).error, errors.RequestRejected)


def test_an_error_of_a_hundred_megabytes_is_not_read():
    body = json.dumps({"error": {"message": "x" * 100}}).encode() + b" " * 3_000_000
    head = f"HTTP/1.1 400 Bad\r\ncontent-length: {100_000_000}\r\n\r\n".encode()
    with provider([head, body]) as server, asking(server) as model:
        assert isinstance(failure_of(model), errors.RequestRejected)
