"""Tool calls as providers stream them: in pieces, interleaved, with identities that repeat or are left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pawl.core.dialogue import Message, Speaker, ToolAnswer, ToolCall, user
from pawl.models.json_text import scrubbed, scrubbed_value

MOST_CALLS = 64
_OWN_ID = re.compile(r"call_(\d{1,9})")


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
        if len(self._calls) > MOST_CALLS:
            left_out = len(self._calls) - MOST_CALLS
            last = found.pop()
            mistake = (
                f"the answer asked for {len(self._calls)} calls and at most {MOST_CALLS} are taken: "
                f"this one and the {left_out} after it were left out"
            )
            found.append(ToolCall(id=last.id, name=last.name, arguments=None, raw=last.raw, mistake=mistake))
        return tuple(found)


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
        value = json.loads(raw, parse_constant=_refuse_constant)
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
        arguments=None if arguments is None else _plain(arguments, raw),
        raw=raw,
        mistake=mistake,
        provider_id=scrubbed(draft.provider_id),
        signature=draft.signature,
    )


def _plain(arguments: Mapping[str, object], raw: str) -> Mapping[str, object]:
    """Escapes in the JSON can still make half characters."""
    if "\\u" not in raw:
        return arguments
    value = scrubbed_value(arguments)
    return value if isinstance(value, dict) else arguments


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


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


_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 40
NOT_EXECUTED = "The call was not executed."
CONTINUE = "Continue."


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation with what providers refuse put right; turns that are right are kept as they are.

    Calls without an answer get one that says so, answers without a call and second answers go, ids are made
    different and of letters that every server takes, empty turns go, and a user speaks first.
    """
    turns: list[Message] = []
    ids: set[str] = set()
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.speaker is not Speaker.ASSISTANT:
            # The answers of tools are taken together with their calls; here they belong to none.
            if message.speaker is Speaker.USER and message.text.strip():
                turns.append(_only_text(message))
            continue
        following = position
        while following < len(messages) and messages[following].speaker is Speaker.TOOL:
            following += 1
        turns.extend(_exchange(message, messages[position:following], ids))
        position = following
    if not turns or turns[0].speaker is not Speaker.USER:
        turns.insert(0, user(CONTINUE))
    return tuple(turns)


def without_thoughts(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation without the provider's own reasoning, for when it does not accept its signatures."""
    return tuple(replace(message, thoughts=()) if message.thoughts else message for message in messages)


def _only_text(message: Message) -> Message:
    return replace(message, calls=(), answers=(), thoughts=()) if message.calls or message.answers else message


def _exchange(message: Message, tools: Sequence[Message], ids: set[str]) -> list[Message]:
    """An assistant's turn and the answers to its calls."""
    if message.answers:
        message = replace(message, answers=())
    if not message.calls:
        return [message] if message.text.strip() else []
    given = [answer for turn in tools for answer in turn.answers]
    calls: list[ToolCall] = []
    answers: list[ToolAnswer] = []
    for call in message.calls:
        answer = next((one for one in given if one.call == call.id), None)
        if answer is None:
            answer = ToolAnswer(call=call.id, name=call.name, text=NOT_EXECUTED, failed=True)
        else:
            given.remove(answer)
        own = _unused(call.id, ids)
        ids.add(own)
        calls.append(call if own == call.id else replace(call, id=own))
        answers.append(answer if own == answer.call else replace(answer, call=own))
    said = message if _same(calls, message.calls) else replace(message, calls=tuple(calls))
    if len(tools) == 1 and _same(answers, tools[0].answers) and not tools[0].text:
        return [said, tools[0]]
    return [said, Message(speaker=Speaker.TOOL, answers=tuple(answers))]


def _same(new: Iterable[object], old: Sequence[object]) -> bool:
    items = list(new)
    return len(items) == len(old) and all(one is other for one, other in zip(items, old, strict=True))


def _unused(wanted: str, ids: set[str]) -> str:
    base = own = _NOT_IN_IDS.sub("_", wanted)[-_LONGEST_ID:] or "call"
    number = 2
    while own in ids:
        own = f"{base}_{number}"
        number += 1
    return own
