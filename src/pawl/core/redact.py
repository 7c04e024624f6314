"""Taking secrets out of text before it is stored, shown or sent: keys, tokens, passwords, private keys.

What is known to be a secret, because it was configured, is taken out wherever it stands; everything else by its shape
or by the name beside it.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, quote_plus

from pawl.core.dialogue import Message, Request, Thought, ToolAnswer, ToolCall, ToolOffer
from pawl.core.secret_names import is_placeholder, is_secret_argument
from pawl.core.secret_shapes import MARK, hidden, hidden_each

_SHORTEST = 8
_SHORTEST_MIXED = 6
_SURELY_LONG = 16
_SHORTEST_ENCODED = 10


def forms_of(value: str) -> frozenset[str]:
    """Every form to look for; none when the value is too common a word to be hidden wherever it stands.

    Servers on one's own machine take any key, so that people write `ollama`, `none` or `not-needed`.
    """
    value = value.strip()
    if is_placeholder(value) or (len(value) < _SURELY_LONG and not _is_sure(value)):
        return frozenset()
    # Of several lines each may stand alone, as a file with a key in it is shown.
    lines = [line.strip() for line in value.splitlines() if not line.startswith("-----")] if "\n" in value else []
    parts = (value, *(line for line in lines if len(line) >= _SURELY_LONG))
    return frozenset(form for part in parts for form in _forms(part))


def _is_sure(value: str) -> bool:
    """Whether a short value stands in no ordinary text: eight characters that are no plain word, or six mixed ones."""
    if len(value) >= _SHORTEST:
        return not (value.replace("-", "").replace("_", "").isalpha() and value.islower())
    return len(value) >= _SHORTEST_MIXED and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from _escaped(value)
    yield from _encoded(value.encode("utf-8", "surrogatepass"))


def _escaped(value: str) -> Iterator[str]:
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]):
        yield text
        yield text.replace("/", "\\/")
    safe = value.encode("utf-8", "surrogatepass")
    for text in (quote(safe, safe=""), quote(safe), quote_plus(safe)):
        yield text
        yield _small_escapes(text)


def _small_escapes(text: str) -> str:
    """`%2F` as `%2f`."""
    head, *rest = text.split("%")
    return "%".join((head, *(part[:2].lower() + part[2:] for part in rest)))


def _encoded(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        # What stands before the value decides how its bits fall; only the characters that it alone decides are kept.
        text = base64.b64encode(b"\0" * before + data).decode("ascii").rstrip("=")
        inner = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(inner) >= _SHORTEST_ENCODED:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


__all__ = [
    "MARK",
    "Redactor",
    "redacted",
    "redacted_body",
    "redacted_command",
    "redacted_each",
    "register",
    "without_known",
]

_WORD = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
_SECRET_NAME = re.compile(rf"(?i){_WORD}")
_SECRET_OPTION = re.compile(rf"(?i)--?[a-z0-9-]{{0,40}}{_WORD}")
_DEEPEST_VALUE = 64


class Redactor:
    """Takes out the values that it was told, and whatever looks like a secret."""

    __slots__ = ("_forms", "generation")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self.generation = 0
        """Changes when a value is added, so that what was redacted before can be thrown away."""
        self.register(*values)

    def register(self, *values: str) -> None:
        """Adds values that are secret wherever they stand; too short ones and placeholders are left out."""
        if not values:
            return

        forms = {form for value in values for form in forms_of(value)} - set(self._forms)
        if forms:
            # The longest first: one value may hold another.
            self._forms = tuple(sorted({*self._forms, *forms}, key=lambda form: (-len(form), form)))
            self.generation += 1

    def knows(self, text: str) -> bool:
        """Whether a value that was registered stands in the text, in any form."""
        return any(form in text for form in self._forms)

    def redacted(self, text: str) -> str:
        """The text with every secret that can be recognised replaced by a mark."""
        return hidden(self.without_known(text))

    def without_known(self, text: str) -> str:
        """The text with only the values that were registered replaced."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text


PROCESS = Redactor()
"""The one of this process: a key that is configured is a secret for all of it."""


def register(*values: str) -> None:
    """Makes these values secrets for the rest of the process."""
    PROCESS.register(*values)


def redacted(text: str) -> str:
    """The text with every secret that can be recognised replaced by a mark."""
    return PROCESS.redacted(text)


def redacted_each(texts: Sequence[str]) -> list[str]:
    """The same for many short texts, which costs less than one after the other."""
    return hidden_each([PROCESS.without_known(text) for text in texts])


def without_known(text: str) -> str:
    """The text without the values that are secrets of this process; whatever only looks like one stays."""
    return PROCESS.without_known(text)


def redacted_command(words: Sequence[str]) -> str:
    """A command as it can be typed again, except for its secrets."""
    shown: list[str] = []
    is_value = False
    for word in words:
        shown.append(MARK if is_value and not word.startswith("-") else shlex.quote(redacted(word)))
        is_value = _SECRET_OPTION.fullmatch(word) is not None
    return redacted(" ".join(shown))


def redacted_body(body: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    """The same for values in values: what has the name of a secret is hidden whatever it looks like."""
    return {
        redacted(key): MARK
        if isinstance(value, str) and value and _SECRET_NAME.search(key)
        else _redacted_value(value, depth)
        for key, value in body.items()
    }


def _redacted_value(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST_VALUE:
        return MARK
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return redacted_body({str(key): inner for key, inner in value.items()}, depth + 1)
        case list() | tuple():
            return [_redacted_value(inner, depth + 1) for inner in value]
    return value


_Value = TypeVar("_Value")

_LARGEST = 4096
_DEEPEST = 64


class _Once:
    """What came of a value, remembered by identity: messages hold mappings and have no hash.

    The value is kept with its result, so that no other can get its identity meanwhile; the oldest go first.
    """

    def __init__(self) -> None:
        self._done: dict[tuple[int, str], tuple[object, object]] = {}
        self._known = (PROCESS, 0)

    def of(self, value: _Value, purpose: str, make: Callable[[_Value], _Value]) -> _Value:
        known = (PROCESS, PROCESS.generation)
        if known != self._known:
            self._done.clear()
            self._known = known
        key = (id(value), purpose)
        found = self._done.get(key)
        if found is not None and found[0] is value:
            return found[1]  # type: ignore[return-value]
        result = make(value)
        if len(self._done) >= _LARGEST:
            for old in list(self._done)[: _LARGEST // 2]:
                self._done.pop(old, None)
        self._done[key] = (value, result)
        return result


_once = _Once()


def redacted_message(message: Message) -> Message:
    """The message as it may be stored and shown; the same value when there is nothing to hide."""
    return _once.of(message, "stored", _message)


def redacted_request(request: Request) -> Request:
    """The request as it may be sent; the same value when there is nothing to hide.

    What a provider signed goes back to it unchanged, or not at all when it holds a secret that is known.
    """
    system = tuple(_text(part) for part in request.system)
    messages = tuple(_once.of(message, "sent", _sent) for message in request.messages)
    tools = tuple(_once.of(offer, "offer", _offer) for offer in request.tools)
    if _same(system, request.system) and _same(messages, request.messages) and _same(tools, request.tools):
        return request
    return replace(request, system=system, messages=messages, tools=tools)


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))


def _text(text: str) -> str:
    return _once.of(text, "text", _redacted_text)


def _redacted_text(text: str) -> str:
    shown = redacted(text)
    return text if shown == text else shown


def _message(message: Message) -> Message:
    shown = replace(
        message,
        text=redacted(message.text),
        thoughts=tuple(_thought(thought) for thought in message.thoughts),
        calls=tuple(redacted_call(call) for call in message.calls),
        answers=tuple(redacted_answer(answer) for answer in message.answers),
    )
    return message if shown == message else shown


def _sent(message: Message) -> Message:
    shown = redacted_message(message)
    if not any(thought.signature for thought in message.thoughts):
        return shown
    thoughts = tuple(kept for thought in message.thoughts if (kept := _sent_thought(thought)))
    return message if shown is message and thoughts == message.thoughts else replace(shown, thoughts=thoughts)


def _thought(thought: Thought) -> Thought:
    """A signature holds for the text as it was."""
    shown = redacted(thought.text)
    return thought if shown == thought.text else Thought(text=shown)


def _sent_thought(thought: Thought) -> Thought | None:
    """A provider refuses its own thought when one letter of it is another."""
    if not thought.signature:
        return _thought(thought)
    return None if PROCESS.knows(thought.text) or PROCESS.knows(thought.signature) else thought


def redacted_answer(answer: ToolAnswer) -> ToolAnswer:
    """What a tool brought, as the model is sent it."""
    return replace(answer, name=redacted(answer.name), text=redacted(answer.text))


def redacted_call(call: ToolCall) -> ToolCall:
    """The raw text follows the arguments, so that it stays JSON."""
    arguments = call.arguments
    shown = None if arguments is None else redacted_arguments(arguments)
    raw = redacted(call.raw)
    if shown is not None and call.raw and (shown != arguments or raw != call.raw):
        raw = json.dumps(shown)
    return replace(call, name=redacted(call.name), arguments=shown, raw=raw, mistake=redacted(call.mistake))


def redacted_arguments(arguments: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    """The arguments of a call: texts are looked into, and a name decides as it does in a text."""
    return {redacted(name): _argument(name, value, depth) for name, value in arguments.items()}


def _argument(name: str, value: object, depth: int) -> object:
    if depth > _DEEPEST:
        return MARK
    match value:
        case str():
            return MARK if is_secret_argument(name, value) else redacted(value)
        case Mapping():
            return redacted_arguments(value, depth + 1)
        case list() | tuple():
            return [_argument(name, inner, depth + 1) for inner in value]
    return value


def _offer(offer: ToolOffer) -> ToolOffer:
    shown = redacted(offer.description)
    return offer if shown == offer.description else replace(offer, description=shown)
