"""Tool calls and JSON as models write them: in pieces, interleaved, with identities that repeat or are left out.

What is mended is mended in one way only; a value is never guessed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from pawl.core.dialogue import Message, ToolCall
from pawl.core.lazy_dataclass import dataclass

MOST_CALLS = 64
_OWN_ID = re.compile(r"call_(\d{1,9})")
_SURROGATE = re.compile("[\ud800-\udfff]")


def scrubbed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrubbed_value(value: object) -> object:
    """The same for every text in a JSON value."""
    match value:
        case str():
            return scrubbed(value)
        case list():
            return [scrubbed_value(inner) for inner in value]
        case dict():
            return {scrubbed(str(key)): scrubbed_value(inner) for key, inner in value.items()}
    return value


class Scrubber:
    """Scrubs a text that comes in pieces: a pair that two pieces share is one character."""

    def __init__(self) -> None:
        self._half = ""

    def piece(self, text: str) -> str:
        if not self._half and text.isascii():
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return scrubbed(text)

    def rest(self) -> str:
        """The rest, when nothing follows."""
        half, self._half = self._half, ""
        return scrubbed(half)


_MOST_CHARACTERS = 400_000
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)

Parsed = tuple[object, str]
"""A value and an empty text, or None and what is wrong."""


def parsed(text: str) -> Parsed:
    """The value of a JSON text.

    Line breaks inside of strings, commas before a closing bracket and Python's way of writing the same value are read.
    A text that is cut off, has a name twice or anything after the value is not.
    """
    if len(text) > _MOST_CHARACTERS:
        return None, f"the JSON has more than {_MOST_CHARACTERS} characters"
    try:
        return scrubbed_value(_loads(text)), ""
    except json.JSONDecodeError as error:
        mistake = f"this is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return None, f"this is not JSON that can be read: {error}"
    try:
        return scrubbed_value(_loads(_STRING_OR_COMMA.sub(_without_comma, text))), ""
    except (ValueError, RecursionError):
        pass
    value = _python(text)
    return (None, mistake) if value is None else (scrubbed_value(value), "")


def objects(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost JSON objects of a text begin and end; what stands around them is passed over."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    while at != -1:
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield at, end
        at = text.find("{", end)


def _loads(text: str) -> object:
    return json.loads(text, strict=False, object_pairs_hook=_once, parse_constant=_refused)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _refused(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _without_comma(match: re.Match[str]) -> str:
    return "" if match[0] == "," else match[0]


def _python(text: str) -> object | None:
    """A dict or list as Python writes it: other quotes, None, True and False, the same values."""
    try:
        value = ast.literal_eval(text.strip())
        # What JSON has no word for, or a name that is no text, is not the same value.
        said = json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict | list) and json.loads(said) == value else None


@dataclass(slots=True)
class CallDraft:
    """One call while its pieces come in."""

    name: str = ""
    provider_id: str = ""
    signature: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        return (
            bool(self.pieces) and self.pieces[-1].rstrip().endswith("}") and parsed_arguments(self.raw)[0] is not None
        )


class CallBook:
    """Keeps the calls of one answer apart, whatever their server says about ids and indexes.

    The position in the answer is what identifies a call. A piece belongs to the call at its index, unless it carries
    another id or starts a call anew, as servers do whose index is always 0.
    """

    def __init__(self, offered: Iterable[str] = ()) -> None:
        self._offered = frozenset(offered)
        self._calls: list[CallDraft] = []
        self._at: dict[object, CallDraft] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __iter__(self) -> Iterator[CallDraft]:
        return iter(self._calls)

    def begin(self, index: object, name: str, provider_id: str = "") -> CallDraft:
        """A new call at this index; the one that stood there is complete."""
        call = CallDraft(name=name, provider_id=provider_id)
        self._calls.append(call)
        self._at[index] = call
        return call

    def at(self, index: object) -> CallDraft | None:
        return self._at.get(index)

    def piece(self, index: int | None, *, provider_id: str, name: str, arguments: str) -> CallDraft:
        """Adds a piece to the call that it belongs to; returns that call."""
        call = self._owner(index, provider_id)
        if call is None or (name and self._starts_anew(call, provider_id, name, arguments)):
            call = self.begin(index, name, provider_id)
        else:
            call.provider_id = call.provider_id or provider_id
            if name != call.name and not call.pieces:
                call.name += name
        if arguments:
            call.pieces.append(arguments)
        return call

    def _owner(self, index: int | None, provider_id: str) -> CallDraft | None:
        if index is not None:
            call = self._at.get(index)
        elif provider_id:
            call = next((one for one in reversed(self._calls) if one.provider_id == provider_id), None)
        else:
            call = self._calls[-1] if self._calls else None
        is_other = call is not None and provider_id and call.provider_id not in ("", provider_id)
        return None if is_other else call

    def _starts_anew(self, call: CallDraft, provider_id: str, name: str, arguments: str) -> bool:
        """Some servers repeat id and name with every piece, some give several calls one id or none."""
        if call.is_whole:
            return bool(arguments) or not provider_id
        return not provider_id and name != call.name and {name, call.name} <= self._offered

    def calls(self, start: int, *, is_cut: bool) -> tuple[ToolCall, ...]:
        """The calls under Pawl's own ids, from `call_START` on; at most `MOST_CALLS` of them."""
        found = []
        for number, draft in enumerate(self._calls[:MOST_CALLS]):
            is_last = number == len(self._calls) - 1
            found.append(_call(draft, f"call_{start + number}", is_cut=is_cut and is_last))
        return limited(found, len(self._calls))


def limited(calls: Sequence[ToolCall], asked: int) -> tuple[ToolCall, ...]:
    """The first `MOST_CALLS` calls of those that were asked for; the last of them says what was left out."""
    if asked <= MOST_CALLS:
        return tuple(calls)
    mistake = (
        f"the answer asked for {asked} calls and at most {MOST_CALLS} are taken: "
        f"this one and the {asked - MOST_CALLS} after it were left out"
    )
    return (*calls[: MOST_CALLS - 1], replace(calls[MOST_CALLS - 1], arguments=None, mistake=mistake))


def next_number(messages: Sequence[Message]) -> int:
    """The number of the next call of a conversation: the same history gives the same one."""
    count = highest = 0
    for message in messages:
        for call in message.calls:
            count += 1
            if own := _OWN_ID.fullmatch(call.id):
                highest = max(highest, int(own[1]))
    return max(count, highest) + 1


def parsed_arguments(raw: str) -> tuple[dict[str, object] | None, str]:
    """The arguments as an object, or None and what is wrong with them."""
    if not raw.strip():
        return {}, ""
    try:
        # Escapes in the JSON can make half characters.
        value = scrubbed_value(json.loads(raw, parse_constant=_refused))
    except json.JSONDecodeError as error:
        return None, f"the arguments are not JSON: {error.msg} at character {error.pos}"
    except (ValueError, RecursionError):
        return None, "the arguments are not JSON that can be read"
    if isinstance(value, dict):
        return value, ""
    return None, f"the arguments must be a JSON object, not {_kind(value)}"


def _call(draft: CallDraft, own_id: str, *, is_cut: bool) -> ToolCall:
    raw = scrubbed(draft.raw)
    arguments, mistake = parsed_arguments(raw)
    if is_cut and (arguments is None or not raw):
        arguments, mistake = None, "the call was cut off by the limit on the length of an answer"
    return ToolCall(
        id=own_id,
        name=scrubbed(draft.name),
        arguments=arguments,
        raw=raw,
        mistake=mistake,
        provider_id=scrubbed(draft.provider_id),
        signature=draft.signature,
    )


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text"
        case list():
            return "a list"
    return "a number"
