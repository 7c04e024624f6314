"""Taking secrets out of text before it is stored, shown or sent: keys, tokens, passwords, private keys.

What is known to be a secret, because it was configured, is taken out wherever it stands; everything else by its shape
or by the name beside it.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, quote_plus

from pawl.core.dialogue import Message, Request, Thought, ToolAnswer, ToolCall, ToolOffer
from pawl.core.lazy_dataclass import dataclass
from pawl.core.secret_names import (
    NEEDLES,
    PATTERN,
    compiled,
    is_base64_pair,
    is_mixed,
    is_placeholder,
    is_random,
    is_secret_argument,
    secret_span,
    without_references,
)

MARK = "[redacted]"

Span = tuple[int, int]


def _value(match: re.Match[str]) -> Span | None:
    return match.span("value")


@dataclass(frozen=True, slots=True)
class Shape:
    """Where to look, what must stand there, and which part of it is hidden."""

    needle: str
    """In small letters where the case does not matter."""
    pattern: str
    """Matched at the needle."""
    judge: Callable[[re.Match[str]], Span | None] = _value
    """The span to hide, or None for what only looks like a secret."""


def hidden(text: str) -> str:
    """The text with what has the shape or the name of a secret replaced by a mark."""
    return _hidden(text, _EXACT, _ANY_CASE)


def hidden_each(texts: Sequence[str]) -> list[str]:
    """The same for many short texts, each for itself; what none of them can hold is looked for once."""
    together = "\n".join(texts)
    lowered = _lowered(together)
    exact = [shape for shape in _EXACT if shape.needle in together]
    any_case = [shape for shape in _ANY_CASE if shape.needle in lowered]
    return [_hidden(text, exact, any_case) for text in texts] if exact or any_case else list(texts)


def _hidden(text: str, exact: Iterable[Shape], any_case: Iterable[Shape]) -> str:
    for shape in exact:
        if shape.needle in text:
            text = _replaced(text, text, shape)
    lowered = _lowered(text)
    for shape in any_case:
        if shape.needle in lowered:
            changed = _replaced(text, lowered, shape)
            if changed is not text:
                text, lowered = changed, _lowered(changed)
    return text


def _lowered(text: str) -> str:
    # The one letter whose small form is longer would move everything behind it.
    return text.replace("\u0130", "I").lower()


def _replaced(text: str, haystack: str, shape: Shape) -> str:
    pattern = compiled(shape.pattern)
    pieces: list[str] = []
    done = 0
    at = haystack.find(shape.needle)
    while at >= 0:
        match = pattern.match(text, at)
        span = shape.judge(match) if match else None
        if span is not None:
            pieces += (text[done : span[0]], MARK)
            done = span[1]
        at = haystack.find(shape.needle, max(at + len(shape.needle), done))
    return "".join((*pieces, text[done:])) if pieces else text


_START = r"(?:(?<![A-Za-z0-9])|(?<=[^\\]\\[nrt]))"
"""Where a word starts, also behind the end of a line that is written as two characters."""


def _token(prefix: str, body: str = r"[A-Za-z0-9_-]{16,}+") -> Shape:
    # Names such as `sk-folding-cube-animation` have no digit.
    return Shape(prefix, rf"{_START}(?P<value>{re.escape(prefix)}(?=[A-Za-z_.-]{{0,100}}+[0-9]){body})")


_PRIVATE_KEY = r"""
    (?P<value>-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?P<inside>(?:(?!-----(?:BEGIN|END)).){0,32768}+)-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
      | (?P<cut>[ \t]*(?:\r?\n|\\r|\\n|(?=\Z))
          (?:[A-Za-z0-9+/=:,.\s-]|\\[nrt]|["'+\s\\]{1,40}(?=[A-Za-z0-9+/=]{24})){0,32768}+)
    ))
"""


def _private_key(match: re.Match[str]) -> Span | None:
    inside = match["inside"]
    if inside and any(quote in inside for quote in "\"'`") and not compiled(r"[A-Za-z0-9+/]{24}").search(inside):
        return None  # The two lines as constants of a program.
    return match.span()


def _has_own(value: str) -> bool:
    """More than a reference or a placeholder."""
    own = without_references(value)
    return bool(own) and not is_placeholder(own)


def _own_value(match: re.Match[str]) -> Span | None:
    return match.span("value") if _has_own(match["value"]) else None


def _random_value(match: re.Match[str]) -> Span | None:
    return match.span("value") if is_random(match["value"]) else None


def _user_value(match: re.Match[str]) -> Span | None:
    """Numbers are a user and a group."""
    return None if match["value"].isdigit() else _own_value(match)


def _scheme_value(match: re.Match[str]) -> Span | None:
    value = match["value"]
    return match.span("value") if _has_own(value) and (is_mixed(value) or is_base64_pair(value)) else None


def _header_value(match: re.Match[str]) -> Span | None:
    """Looked at word by word, because code and prose name headers as well; hidden to the end of the line."""
    words = without_references(match["value"]).replace("=", " ").replace(";", " ").split()
    if not any(len(word) >= 6 and is_mixed(word) and not is_placeholder(word) for word in words):
        return None
    rest = compiled(r"""[^\r\n"'\\]*+""").match(match.string, match.end())
    return match.start("value"), rest.end() if rest else match.end()


_LINE = r"""(?P<value>(?!\[redacted\])[^\r\n"'\\]{1,2048}+)"""
_QUOTES = r"""\\{0,3}["']?+"""
_WORD = r"""(?P<value>(?!\[redacted\])(?:"[^"\n]{1,1024}"|'[^'\n]{1,1024}'|[^\s"'&;,)}\]]+))"""
_PASSWORD_BEFORE_HOST = r"""
    (?P<value>(?!\[redacted\])[^\s/@"'<>`]{1,512}+(?:@(?!\[redacted\])[^\s/@"'<>`]{1,128}+){0,3})(?=@)
"""
_DATABASES = ("postgres", "postgresql", "mysql", "mariadb", "mongodb", "redis", "amqp", "mssql", "clickhouse")


def _address_value(match: re.Match[str]) -> Span | None:
    if match["alone"]:
        return match.span("alone") if is_random(match["alone"]) else None
    return _own_value(match)


def _database_value(match: re.Match[str]) -> Span | None:
    """Only there may a password hold a slash; elsewhere a path with an at sign looks the same."""
    scheme = match.string[max(0, match.start() - 24) : match.start()].lower()
    name = compiled(r"([a-z]+)(?:\+[a-z0-9]+)?\Z").search(scheme)
    return _own_value(match) if name and name[1].startswith(_DATABASES) else None


_LETTERS = r"[A-Za-z0-9]{20,}+"
_WORDS = r"[A-Za-z0-9_-]{20,}+"
_HEX = r"[a-f0-9]{32,}+"

_TOKENS = (
    *(_token(prefix) for prefix in ("sk-", "pk-", "rk-", "csk-", "pplx-", "tskey-", "GOCSPX-", "sbp_", "sb_secret_")),
    *(_token(f"{kind}k_{use}_", r"[A-Za-z0-9]{10,}+") for kind in "spr" for use in ("live", "test")),
    *(_token(f"gh{kind}_", _LETTERS) for kind in "pousr"),
    *(
        _token(prefix, _WORDS)
        for prefix in ("github_pat_", "dckr_pat_", "whsec_", "lin_api_", "figd_", "glsa_", "glc_")
    ),
    *(_token(f"gl{kind}-") for kind in ("pat", "ptt", "dt", "rt", "cbt", "agent", "soat", "ft")),
    *(_token(f"xox{kind}-", r"[A-Za-z0-9-]{10,}+") for kind in "abceposr"),
    _token("xapp-", r"[A-Za-z0-9-]{10,}+"),
    *(_token(prefix, r"[A-Za-z0-9]{30,}+") for prefix in ("npm_", "hf_", "gsk_", "r8_", "pul-", "ntn_", "fw_")),
    *(_token(prefix, r"[A-Za-z0-9_-]{30,}+") for prefix in ("pypi-", "xai-", "nvapi-", "AIza", "ATATT3", "ATBB")),
    *(_token(prefix, _HEX) for prefix in ("dapi", "key-", "rubygems_", "dop_v1_", "doo_v1_", "shpat_", "shpss_")),
    *(_token(prefix, r"[A-Za-z0-9_=-]{30,}+") for prefix in ("sntrys_", "sntryu_", "pscale_pw_", "pscale_tkn_")),
    *(_token(prefix, r"[A-Z0-9-]{24,}+") for prefix in ("NRAK-", "PMAK-")),
    *(
        _token(prefix, r"[A-Za-z0-9_.-]{20,}+")
        for prefix in ("ya29.", "hvs.", "hvb.", "dp.pt.", "dp.st.", "fo1_", "fm2_")
    ),
    _token("AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
    Shape("SG.", rf"{_START}(?P<value>SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,64}})"),
    Shape("eyJ", r"(?<![A-Za-z0-9_-])(?P<value>eyJ[\w-]{8,4096}\.[\w-]{8,8192}\.[\w-]{8,4096})"),
    Shape("eyJ", r"(?<=\\[nrt])(?P<value>eyJ[\w-]{8,4096}\.[\w-]{8,8192}\.[\w-]{8,4096})"),
    # An Azure client secret has this in its middle.
    Shape("8Q~", r"(?P<value>8Q~[A-Za-z0-9~._-]{31,34})(?![A-Za-z0-9~._-])"),
    Shape(".atlasv1.", r"(?P<value>\.atlasv1\.[A-Za-z0-9_=-]{60,}+)"),
    # A Telegram bot's.
    Shape(":AA", r"(?<=[0-9]{8})(?P<value>:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
)

_PLACES = (
    Shape("-----BEGIN ", _PRIVATE_KEY, _private_key),
    # With the secret key beside it, as in a file of credentials.
    *(
        Shape(
            prefix, rf"{_START}(?P<value>{prefix}[A-Z0-9]{{16}}\b(?:[\s,:;\"']{{1,4}}[A-Za-z0-9/+]{{40}}(?![\w/+=]))?)"
        )
        for prefix in ("AKIA", "ASIA")
    ),
    Shape("hooks.slack.com/", r"hooks\.slack\.com/[a-z]{1,16}/(?P<value>[A-Za-z0-9/_-]{10,}+)"),
    Shape("/api/webhooks/", r"/api/webhooks/(?P<value>[0-9]{5,}/[A-Za-z0-9_-]{20,}+)"),
    Shape("webhook.office.com/", r"webhook\.office\.com/\w{1,16}/(?P<value>[A-Za-z0-9@/_-]{20,}+)"),
    Shape(
        "://",
        rf"://(?:[^\s/:@\"'<>`]{{0,256}}+:{_PASSWORD_BEFORE_HOST}|(?P<alone>[A-Za-z0-9_-]{{20,256}}+)(?=@))",
        _address_value,
    ),
    Shape("://", r"""://[^\s/:@"'<>`]{0,256}+:(?P<value>(?!\[redacted\])[^\s@"'<>`]{1,256}+)(?=@)""", _database_value),
    *(
        Shape(
            option,
            rf"(?<![^\s\"'`]){option}[=\s]{{1,4}}+{_QUOTES}[^\s:\"']{{1,128}}+:(?P<value>(?!\[redacted\])[^\s\"']{{1,512}}+)",
            _user_value,
        )
        for option in ("-u", "--user", "--proxy-user")
    ),
    Shape("sshpass", r"sshpass\s{1,4}-p\s{0,4}+" + _WORD),
    *(Shape(name, rf"\{name}(?P<value>[A-Za-z0-9%+/=_-]{{16,2048}}+)", _random_value) for name in ("?key=", "&key=")),
    *(Shape(f"{sign}sig=", rf"\{sign}sig=(?P<value>(?!\[redacted\])[A-Za-z0-9%+/=_-]{{16,2048}}+)") for sign in "?&;"),
)
_EXACT = (*_PLACES, *_TOKENS)

_ANY_CASE = (
    Shape("x-amz-signature=", r".{16}(?P<value>(?!\[redacted\])[A-Za-z0-9%]{16,512}+)"),
    Shape(
        "authorization",
        rf".{{13}}{_QUOTES}\s{{0,4}}[:=]\s{{0,4}}+{_QUOTES}(?:[A-Za-z]{{1,16}}\s{{1,4}})?+{_LINE}",
        _header_value,
    ),
    Shape("cookie", rf".{{6}}{_QUOTES}\s{{0,4}}:\s{{0,4}}+{_QUOTES}{_LINE}", _header_value),
    *(
        Shape(
            scheme,
            rf"(?<![A-Za-z0-9]){'.' * len(scheme)}\s{{1,4}}+(?P<value>[A-Za-z0-9+/_.=~:-]{{8,4096}}+)",
            _scheme_value,
        )
        for scheme in ("bearer", "basic", "bot")
    ),
    Shape("jdbc:oracle:thin:", r".{17}[^\s/@]{1,64}+/(?P<value>(?!\[redacted\])[^\s/@]{1,128}+)(?=@)", _own_value),
    *(Shape(needle, PATTERN, secret_span) for needle in NEEDLES),
)


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


_SECRET_WORD = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
_SECRET_NAME = re.compile(rf"(?i){_SECRET_WORD}")
_SECRET_OPTION = re.compile(rf"(?i)--?[a-z0-9-]{{0,40}}{_SECRET_WORD}")
_DEEPEST_VALUE = 64


class Redactor:
    """Takes out the values that it was told, and whatever looks like a secret."""

    __slots__ = ("_forms", "_lock", "generation")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._forms: tuple[str, ...] = ()
        self.generation = 0
        """Changes when a value is added, so that what was redacted before can be thrown away."""
        self.register(*values)

    def register(self, *values: str) -> None:
        """Adds values that are secret wherever they stand; too short ones and placeholders are left out."""
        forms = {form for value in values for form in forms_of(value)}
        with self._lock:
            if not forms <= set(self._forms):
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
    """A command as it can be typed again, except for its secrets; a line that a shell reads as that line."""
    if tuple(words[:-1]) == ("/bin/sh", "-c"):
        return redacted(words[-1])
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
        else redacted_value(value, depth)
        for key, value in body.items()
    }


def redacted_value(value: object, depth: int = 0) -> object:
    """The same for any value that JSON can hold."""
    if depth > _DEEPEST_VALUE:
        return MARK
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return redacted_body({str(key): inner for key, inner in value.items()}, depth + 1)
        case list() | tuple():
            return [redacted_value(inner, depth + 1) for inner in value]
    return value


_Value = TypeVar("_Value")

_LARGEST = 4096
_DEEPEST = 64


class _Once:
    """A cache by identity: messages hold mappings and have no hash.

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
    """The answer of a tool, as the model is sent it."""
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
