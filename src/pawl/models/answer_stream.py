"""One answer while it comes in: bytes to events, and events of any wire format to text, calls, usage and an end."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from pawl.core.dialogue import ModelResponse, Request, StopReason, TextDelta, Thought, ThoughtDelta, ToolCall, Usage
from pawl.core.lazy_dataclass import dataclass
from pawl.models.calls import CallBook, CallDraft, Scrubber, next_number, scrubbed
from pawl.models.ledger import estimated_usage
from pawl.models.providers import Endpoint, SchemaCarrier, Wire

ANSWER_TOOL = "answer"
"""The tool that carries an answer by its schema where the format has no better way."""

_MOST_OUTPUT = 5_000_000
_SPARE_INPUT = 50_000
_LONGEST_REASON = 60
_LONGEST_TOKEN = 20
"""Characters; a server that goes on past the length that it was asked for is cut off by this."""
_THOUGHTS = 4
"""Times the length of an answer."""
MOST_BODY = 32 * 1024 * 1024
MOST_EVENT = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Corrupt(Exception):
    """The stream does not make sense: the attempt is thrown away."""


class ErrorInside(Exception):
    """An error that came inside of an answer, with the body that describes it."""

    def __init__(self, body: object) -> None:
        super().__init__("an error inside of an answer")
        self.body = body


class NoAnswer(Exception):
    """The body is none of a model's answer."""


@dataclass(slots=True)
class ThoughtDraft:
    pieces: list[str] = field(default_factory=list)
    signature: str = ""


class Draft:
    """Collects what a wire format's decoder reads; `fresh` is what can be shown at once."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
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
        self._format = endpoint.format
        self._model = endpoint.model
        self._has_answer_tool = request.answer_schema is not None and endpoint.schema is SchemaCarrier.TOOL
        self._text: list[str] = []
        self._thoughts: list[ThoughtDraft] = []
        self._scrubber = Scrubber()
        self._thought_scrubber = Scrubber()
        self._sequence: int | None = None
        self._counts: dict[str, int | None] = {}
        self._room = request.sampling.max_output * _LONGEST_TOKEN
        self._thought_room = self._room * _THOUGHTS

    def _spend(self, piece: str, *, thought: bool = False) -> None:
        self.progress += 1
        if thought:
            self._thought_room -= len(piece)
        else:
            self._room -= len(piece)
        if self._room < 0 or self._thought_room < 0:
            self.end(StopReason.LENGTH)
            self.is_ended = True

    def text(self, piece: object) -> None:
        if not isinstance(piece, str) or not piece:
            return
        self._spend(piece)
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
        self._spend(piece, thought=True)
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
        self._spend(piece)
        if piece and self._has_answer_tool and call.name == ANSWER_TOOL and (shown := self._scrubber.piece(piece)):
            self.fresh.append(TextDelta(shown))

    def count(self, **counts: object) -> None:
        """Takes the tokens that the provider counts; None for a number that no count can be."""
        self._counts.update({name: _tokens(value) for name, value in counts.items() if value is not None})

    def end(self, stop: StopReason) -> None:
        self.progress += 1
        # A refusal stays one, whatever the server says afterwards.
        if self.stop is not StopReason.REFUSED:
            self.stop = stop

    def end_for(self, reason: str) -> None:
        """Ends for the reason that the provider gives. For one that nobody knows, what it said counts as words."""
        if reason in self._format.broken:
            raise Corrupt(f"its server gave up ({reason})")
        known = self._format.stops
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

    def finish(self, sent: int) -> ModelResponse:
        """The answer, once it has ended properly. `sent` is the size of the request."""
        self._text.append(self._scrubber.rest())
        stop = self.stop or StopReason.END
        usage = self._usage(sent)
        limit = self._request.sampling.max_output
        hit_the_limit = stop is StopReason.LENGTH or (usage is not None and usage.output >= limit)
        calls = self.calls.calls(next_number(self._request.messages), is_cut=hit_the_limit)
        if any(call.arguments is None for call in calls) and hit_the_limit:
            stop = StopReason.LENGTH
        text, thoughts = self.text_so_far, self._whole_thoughts()
        if usage is None:
            usage = estimated_usage(self._request, text + "".join(one.text for one in thoughts), calls)
        text, calls = self._schema_answer(text, calls)
        if stop is StopReason.REFUSED:
            calls = ()
        elif stop in (StopReason.END, StopReason.CALLS):
            stop = StopReason.CALLS if calls else StopReason.END
        return ModelResponse(
            text=text,
            stop=stop,
            usage=usage,
            model=self._model,
            thoughts=thoughts,
            calls=calls,
            served_by=self.served_by,
        )

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

    def _usage(self, sent: int) -> Usage | None:
        """The tokens as the provider counts them; None when it said nothing usable."""
        read, written = self._counts.get("input"), self._counts.get("output")
        if read is None or written is None or read > 2 * sent + _SPARE_INPUT or written > _MOST_OUTPUT:
            return None

        def part(name: str, whole: int) -> int:
            return min(self._counts.get(name) or 0, whole)

        return Usage(
            input=read,
            output=written,
            cached=part("cached", read),
            cache_written=part("cache_written", read),
            reasoning=part("reasoning", written),
        )


class WireDecoder:
    """Reads one wire format into a draft."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        self.draft = Draft(request, endpoint)

    def event(self, event: ServerEvent) -> None:
        """One event of a stream. What is not JSON is noise, half an object is `Corrupt`."""
        if not event.data.lstrip().startswith("{"):
            if event.name == "error":
                raise ErrorInside(event.data)
            return
        try:
            payload = json.loads(event.data)
        except (ValueError, RecursionError):
            raise Corrupt("an event of it is not JSON") from None
        _check_error(payload)
        if self.draft.in_sequence(payload):
            self.read(payload, event.name)

    def whole(self, payload: Mapping[str, object]) -> None:
        """An answer that came in one piece."""
        _check_error(payload)
        self.read_whole(payload)

    def close(self) -> None:
        """The body ended cleanly."""

    def read(self, payload: Mapping[str, object], name: str = "") -> None:
        """The object of one event; the name is that of the event."""
        raise NotImplementedError

    def read_whole(self, payload: Mapping[str, object]) -> None:
        raise NotImplementedError


def _check_error(payload: Mapping[str, object]) -> None:
    if payload.get("error") or payload.get("type") == "error":
        raise ErrorInside(payload)


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: str


class EventTooLarge(ValueError):
    """One event goes over the limit."""


class EventDecoder:
    """Feed it bytes, take whole events. Comments and fields that nobody asked for are passed over."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        # Every line end becomes a line feed, wherever the bytes are cut.
        self._text = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
        self._rest = ""

    def feed(self, chunk: bytes, *, final: bool = False) -> Iterator[ServerEvent]:
        """The events that end in this chunk. What is not ended by a blank line is no event."""
        self._rest += self._text.decode(chunk, final)
        *blocks, self._rest = self._rest.split("\n\n")
        for block in (*blocks, self._rest):
            if len(block) > self._most:
                raise EventTooLarge
        for block in blocks:
            fields = [line.partition(":")[::2] for line in block.split("\n")]
            data = [value.removeprefix(" ") for field, value in fields if field == "data"]
            names = [value.removeprefix(" ") for field, value in fields if field == "event"]
            if data:
                yield ServerEvent(names[-1] if names else "", "\n".join(data))


class BodyReader:
    """Feeds a decoder. Goes by what the body starts with, because content types are often wrong."""

    def __init__(self, decoder: WireDecoder, *, content_type: str) -> None:
        self._decoder = decoder
        self._content_type = content_type.partition(";")[0].strip().lower()
        self._size = 0
        self._pieces: list[bytes] = []
        self._events: EventDecoder | None = None
        self._is_whole = False
        self._has_events = False

    def feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > MOST_BODY:
            raise NoAnswer(f"it is larger than {MOST_BODY // 1024**2} MiB")
        if self._events is not None:
            self._feed_events(chunk)
            return
        self._pieces.append(chunk)
        if not self._is_whole:
            self._look()

    def close(self) -> None:
        """The body ended cleanly."""
        if self._events is not None:
            self._feed_events(b"", final=True)
            if not self._has_events and self._content_type != "text/event-stream":
                raise NoAnswer(f"its type is {self._content_type or 'not given'}")
        elif self._is_whole:
            self._feed_whole()
        self._decoder.close()

    def _look(self) -> None:
        start = b"".join(self._pieces)
        if _BOM.startswith(start[:3]) and len(start) < len(_BOM):
            return
        first = start.removeprefix(_BOM).lstrip(b" \t\r\n")[:1]
        if not first:
            return
        if first == b"<":
            raise NoAnswer("it is a web page")
        if first in b"{[":
            self._is_whole = True
            return
        self._events = EventDecoder(most=MOST_EVENT)
        self._pieces.clear()
        self._feed_events(start)

    def _feed_events(self, chunk: bytes, *, final: bool = False) -> None:
        assert self._events is not None
        try:
            for event in self._events.feed(chunk, final=final):
                self._has_events = True
                if not self._decoder.draft.is_ended:
                    self._decoder.event(event)
        except EventTooLarge:
            raise NoAnswer(f"one event is larger than {MOST_EVENT // 1024**2} MiB") from None

    def _feed_whole(self) -> None:
        try:
            value = json.loads(b"".join(self._pieces).decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            raise Corrupt("it is not whole JSON") from None
        for payload in value if isinstance(value, list) else [value]:
            if not isinstance(payload, dict):
                raise NoAnswer("it is JSON of another kind")
            self._decoder.whole(payload)


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
