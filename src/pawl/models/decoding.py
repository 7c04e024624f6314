"""One answer while it comes in, whatever the wire format: text, reasoning, calls, usage and how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pawl.core.dialogue import Request, StopReason, TextDelta, Thought, ThoughtDelta, ToolCall, Usage
from pawl.models.calls import CallBook, CallDraft, next_number
from pawl.models.endpoint import Endpoint, SchemaCarrier, Wire
from pawl.models.json_text import Scrubber, scrubbed

ANSWER_TOOL = "answer"
"""The tool that carries an answer by its schema where the format has no better way."""

_MOST_OUTPUT = 5_000_000
_SPARE_INPUT = 50_000
_LONGEST_REASON = 60


class Corrupt(Exception):
    """The stream does not make sense: the attempt is thrown away."""


class ErrorInside(Exception):
    """An error that came inside of an answer, with the body that describes it."""

    def __init__(self, body: object) -> None:
        super().__init__("an error inside of an answer")
        self.body = body


@dataclass(slots=True)
class Counted:
    """Tokens as the provider counts them; None when it said nothing usable."""

    input: int | None = None
    output: int | None = None
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0


@dataclass(slots=True)
class ThoughtDraft:
    pieces: list[str] = field(default_factory=list)
    signature: str = ""


class Draft:
    """Collects what a wire format's decoder reads; `fresh` is what can be shown at once."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        self.counted = Counted()
        self.stop: StopReason | None = None
        self.is_ended = False
        """The format's own mark of the end was seen."""
        self.strange_end = ""
        """Why it ended, if that is a reason that nobody knows."""
        self.served_by = ""
        self.identity: tuple[str, str] = ("", "")
        """The provider's id of the answer and when it was made."""
        self.progress = 0
        """Grows with everything that the model says; pings leave it as it is."""
        self.fresh: list[TextDelta | ThoughtDelta] = []
        self.calls = CallBook(offer.name for offer in request.tools)
        self._request = request
        self._wire = endpoint.wire
        self._has_answer_tool = request.answer_schema is not None and endpoint.schema is SchemaCarrier.TOOL
        self._text: list[str] = []
        self._thoughts: list[ThoughtDraft] = []
        self._scrubber = Scrubber()
        self._thought_scrubber = Scrubber()
        self._sequence: int | None = None

    def text(self, piece: object) -> None:
        if not isinstance(piece, str) or not piece:
            return
        self.progress += 1
        if shown := self._scrubber.piece(piece):
            self._text.append(shown)
            self.fresh.append(TextDelta(shown))

    def thought(self, piece: object, *, starts: bool = False) -> None:
        if starts or not self._thoughts:
            if not starts and not piece:
                return
            self._thoughts.append(ThoughtDraft())
        if not isinstance(piece, str) or not piece:
            return
        self.progress += 1
        if shown := self._thought_scrubber.piece(piece):
            self._thoughts[-1].pieces.append(shown)
            self.fresh.append(ThoughtDelta(shown))

    def sign(self, signature: str) -> None:
        """A piece of the signature of the thought that is under way."""
        if not self._thoughts:
            self._thoughts.append(ThoughtDraft())
        self._thoughts[-1].signature += signature

    def call_piece(self, call: CallDraft, piece: str) -> None:
        """A piece of a call's arguments was added; those of the answer's own tool are its text."""
        self.progress += 1
        if piece and self._has_answer_tool and call.name == ANSWER_TOOL and (shown := self._scrubber.piece(piece)):
            self.fresh.append(TextDelta(shown))

    def count(self, **counts: object) -> None:
        """Takes the counts that are given; one that no count can be makes the tokens unknown."""
        for name, value in counts.items():
            if value is not None:
                unknown = None if name in ("input", "output") else 0
                number = _tokens(value)
                setattr(self.counted, name, unknown if number is None else number)

    def end(self, stop: StopReason) -> None:
        self.progress += 1
        # A refusal stays one, whatever the server says afterwards.
        if self.stop is not StopReason.REFUSED:
            self.stop = stop

    def end_for(self, reason: str, known: Mapping[str, StopReason]) -> None:
        """Ends for the reason that the provider gives. For one that nobody knows, what it said counts as words."""
        self.strange_end = "" if reason in known else scrubbed(reason)
        self.end(known.get(reason, StopReason.END))

    @property
    def doubt(self) -> str:
        """Why its calls may not be whole, though it ended; empty when they are."""
        if not self.strange_end or not self.calls:
            return ""
        return f"it has calls and ends for the unknown reason {self.strange_end[:_LONGEST_REASON]!r}"

    def in_sequence(self, payload: Mapping[str, object]) -> bool:
        """Whether the event is new. One that was there before is passed over, one from the past is `Corrupt`."""
        number = payload.get("sequence_number")
        if not isinstance(number, int):
            return True
        before, self._sequence = self._sequence, number
        if before is not None and number < before:
            raise Corrupt("its events came out of order")
        return number != before

    @property
    def text_so_far(self) -> str:
        return "".join(self._text)

    def take(self) -> list[TextDelta | ThoughtDelta]:
        taken, self.fresh = self.fresh, []
        return taken

    def finish(self, sent: int) -> Finished:
        """The answer, once it has ended properly. `sent` is the size of the request."""
        self._text.append(self._scrubber.rest())
        stop = self.stop or StopReason.END
        usage = self._usage(sent)
        limit = self._request.sampling.max_output
        hit_the_limit = stop is StopReason.LENGTH or (not usage.estimated and usage.output >= limit)
        calls = self.calls.calls(next_number(self._request.messages), is_cut=hit_the_limit)
        if any(call.arguments is None for call in calls) and hit_the_limit:
            stop = StopReason.LENGTH
        text, calls = self._schema_answer(self.text_so_far, calls)
        if stop is StopReason.REFUSED:
            calls = ()
        elif stop in (StopReason.END, StopReason.CALLS):
            stop = StopReason.CALLS if calls else StopReason.END
        return Finished(text=text, thoughts=self._whole_thoughts(), calls=calls, stop=stop, usage=usage)

    def _schema_answer(self, text: str, calls: tuple[ToolCall, ...]) -> tuple[str, tuple[ToolCall, ...]]:
        if not self._has_answer_tool:
            return text, calls
        answers = [call.raw for call in calls if call.name == ANSWER_TOOL]
        others = tuple(call for call in calls if call.name != ANSWER_TOOL)
        return (answers[0], others) if answers else (text, others)

    def _whole_thoughts(self) -> tuple[Thought, ...]:
        thoughts = (
            Thought(text="".join(one.pieces), signature=signed(self._wire, one.signature)) for one in self._thoughts
        )
        return tuple(thought for thought in thoughts if thought.text or thought.signature)

    def _usage(self, sent: int) -> Usage:
        said = self.counted
        is_usable = (
            said.input is not None
            and said.output is not None
            and said.input <= 2 * sent + _SPARE_INPUT
            and said.output <= _MOST_OUTPUT
        )
        if is_usable:
            return Usage(
                input=said.input or 0,
                output=said.output or 0,
                cached=min(said.cached, said.input or 0),
                cache_written=min(said.cache_written, said.input or 0),
                reasoning=min(said.reasoning, said.output or 0),
            )
        said_by_model = len(self.text_so_far) + sum(len(piece) for one in self._thoughts for piece in one.pieces)
        said_by_model += sum(len(call.raw) + len(call.name) for call in self.calls)
        return Usage(input=estimated_tokens(sent), output=estimated_tokens(said_by_model), estimated=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What an answer came to."""

    text: str
    thoughts: tuple[Thought, ...]
    calls: tuple[ToolCall, ...]
    stop: StopReason
    usage: Usage


def estimated_tokens(characters: int) -> int:
    return -(-characters // 4)


def payload_of(data: str) -> Mapping[str, object] | None:
    """The JSON object of an event; None for what is noise, `Corrupt` for half an object."""
    if not data.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Corrupt("an event of it is not JSON")
    return value


def table(value: object) -> Mapping[str, object]:
    """The value if it is an object; an empty one for null and everything else."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    return scrubbed(value) if isinstance(value, str) else ""


def as_sent(value: object) -> str:
    """A piece that is scrubbed once it is joined, because a character can be cut in two."""
    return value if isinstance(value, str) else ""


def signed(wire: Wire, signature: str) -> str:
    """A signature that says which format it belongs to."""
    return f"{wire}:{signature}" if signature else ""


def own_signature(wire: Wire, signature: str) -> str:
    """The provider's own form of a signature; empty when it belongs to another format."""
    prefix = f"{wire}:"
    return signature[len(prefix) :] if signature.startswith(prefix) else ""


def total(counts: Iterable[object]) -> int:
    """The sum of counts, negative when one of them is none that can be."""
    numbers = [_tokens(count) for count in counts]
    return -1 if None in numbers else sum(number or 0 for number in numbers)


def _tokens(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Not a number and infinity fail the comparison.
    return int(value) if 0 <= value < 1e12 else None
