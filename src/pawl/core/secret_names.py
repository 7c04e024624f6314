"""Secrets that are known by their name: `password: …`, `API_KEY=…`, `--token …`, `"client_secret": "…"`.

Source code is full of such names with no secret beside them, so that the name, the way the value is given to it and
the value itself are judged together. What is left alone is what a program computes, a placeholder, or words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import cache

from pawl.core.lazy_dataclass import dataclass

SHORTEST = 4
"""A shorter value is no secret worth hiding, and too often a word of a program."""

_WINDOW = 128
_LONGEST_PLACEHOLDER = 64
_RANDOM_LENGTH = 16
_RANDOM_BITS = 3.0
_CAMEL_AVERAGE = 3.5

_WORDS_OF_PLACEHOLDERS = """
    a access account and any api app argument arguments auth bad bar base basic baz bearer bool boolean bytes change
    changeme char client credential credentials database db default demo dummy empty enter env environment example
    fake false field flag flags foo for from function get goes here hidden id in input insert int invalid is it key
    label list login me missing mock must my name new nil no none not null number object of old omitted option
    optional options or our parameter pass passphrase passwd password passwords pem placeholder please private prompt
    pwd random redacted replace required sample secret secrets see self set some something str string sub super test
    testing text the this to todo token tokens true type undefined unknown unset use user username value variable void
    with wrong x xx xxx you your
"""
_PLACEHOLDERS = frozenset(_WORDS_OF_PLACEHOLDERS.split())


_REFERENCE = r"""
    \$?\{\{?[^{}\n]{0,200}(?:\}\}?|\Z) | \$\([^()\n]{0,200}\) | <[^<>\n]{1,200}>
    | %\(\w{1,60}\)s | %[sdr] | \$[A-Za-z_]\w{0,60}
"""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Made when it is first needed: most texts need few of the patterns."""
    return re.compile(pattern, re.VERBOSE | re.DOTALL)


def without_references(value: str) -> str:
    """The value less what is filled in later: `${NAME}`, `{name}`, `<name>`, `%s`, `$NAME`."""
    return compiled(_REFERENCE).sub("", value) if any(sign in value for sign in "{<%$") else value


def is_placeholder(value: str) -> bool:
    """Stands for a secret and is none: `changeme`, `your-api-key`, `****`, `DB_PASSWORD`."""
    head = value[:_WINDOW]
    if len(set(head)) <= 2 or compiled(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\#[0-9A-Fa-f]{3,8}").fullmatch(head):
        return True
    return len(value) <= _LONGEST_PLACEHOLDER and all(word.lower() in _PLACEHOLDERS for word in _words(value))


def is_label(value: str) -> bool:
    """Words for a person to read, such as `Enter your password`."""
    if " " not in value.strip():
        return False
    return any(word.lower() in _PLACEHOLDERS for word in _words(value)) and not is_mixed(value)


def is_address(value: str) -> bool:
    """A place where something is, not the thing."""
    return value.startswith(("/", "./", "../", "~", "http://", "https://", "file:", "arn:"))


def is_mixed(value: str) -> bool:
    """Letters, digits and signs as nobody writes words: `c4nary-Zq8`, but not `sha256_of_token2`."""
    return any(not _is_word(part) for part in compiled(r"[^A-Za-z0-9]+").split(value[:_WINDOW]) if part)


def is_random(value: str) -> bool:
    """Long, mixed and without a pattern: what a machine makes."""
    window = value[:_WINDOW]
    if len(window) < _RANDOM_LENGTH or " " in window or is_address(window):
        return False
    return is_mixed(window) and entropy(window) >= _RANDOM_BITS


def entropy(text: str) -> float:
    """Shannon's, in bits for each character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def is_base64_pair(value: str) -> bool:
    """The form that the scheme Basic sends: `user:password` in base 64."""
    import base64
    import binascii

    try:
        return b":" in base64.b64decode(value[:1024], validate=True)
    except (binascii.Error, ValueError):
        return False


def _words(value: str) -> list[str]:
    parts = compiled(r"[^A-Za-z0-9]+").split(value[:_WINDOW])
    return [word for part in parts if part for word in camel_words(part)]


def camel_words(part: str) -> list[str]:
    """`accessToken` as two words; `wJalrXUtn` stays one, because what it would fall into are no words."""
    words: list[str] = compiled(r"[A-Z]+(?![a-z])\d{0,5}|[A-Z]?[a-z]+\d{0,5}").findall(part)
    return words if sum(map(len, words)) == len(part) and len(part) >= len(words) * _CAMEL_AVERAGE else [part]


def _is_word(part: str) -> bool:
    if part.isalpha():
        return part[1:].islower() or part.isupper() or len(part) < _RANDOM_LENGTH or len(camel_words(part)) > 1
    known = r"(?:[A-Z]?[a-z]+|[A-Z]+)\d{0,4}|\d{1,4}[A-Za-z]{0,3}|\d+|(?i:sha|md|base|utf|oauth|x|i|v)\d{1,4}[a-z]*"
    if compiled(known).fullmatch(part):
        return True
    words = camel_words(part)
    # After a digit a word starts with a capital: `base64Decoded`, not `abcd1234efgh5678`.
    return len(words) > 1 and all(word[0].isupper() for word in words[1:])


Span = tuple[int, int]

_ELSEWHERE = ("wachtwoord", "contraseña", "senha", "hasło", "пароль", "密码", "密碼", "パスワード")
"""Passwords in other languages; `Passwort` and `mot de passe` are found by their letters."""
NEEDLES = ("pass", "pwd", "secret", "token", "key", "credential", "auth", *_ELSEWHERE)

_LONGEST_NAME = 48
_LONGEST_BARE = 200
_NAME_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


class NameKind(IntEnum):
    """The kind of value that a name promises."""

    NOTHING = 0
    PERHAPS = 1
    """Names a secret among other things, so that the value must look like one: `token_id`, `secrets`."""
    KEY = 2
    """A machine made the value."""
    SECRET = 3
    """A machine or a person made the value."""
    PASSWORD = 4
    """A person may have chosen the value."""


_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "passe", *_ELSEWHERE)
_KEYS = ("token", "apikey", "accesskey", "secretkey", "privatekey", "accountkey", "authkey", "credential")
_QUALIFIED = """
    access account aes api app auth client consumer deploy encryption function hmac host license master private
    secret server service session shared signing ssh storage subscription webhook
"""
_BEHIND = """
    b64 base64 current default dev new old plain plaintext primary prod production raw secondary staging str string
    test value
"""
_HARMLESS = "checksum digest fingerprint hash md5 public sha sha1 sha256 sha512"
_KEY_QUALIFIERS = frozenset(_QUALIFIED.split())
_SUFFIXES = frozenset(_BEHIND.split())
_DIGESTS = frozenset(_HARMLESS.split())
_PERHAPS = ("secret", "token", "credential", "apikey", "passw")


def kind_of(name: str) -> NameKind:
    """The kind of value that the name promises."""
    words = [word.lower() for part in compiled(r"[_.-]+").split(name) if part for word in camel_words(part)]
    if _DIGESTS.intersection(words):
        return NameKind.NOTHING
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    last = words[-1].rstrip("0123456789") if words else ""
    before = words[-2] if len(words) > 1 else ""
    if last.endswith(_PASSWORDS) or (last == "pass" and before):
        return NameKind.PASSWORD
    if last.endswith("secret"):
        return NameKind.SECRET
    if last.endswith(_KEYS) or (last == "key" and before in _KEY_QUALIFIERS):
        return NameKind.KEY
    is_part = any(word in ("auth", "oauth") or word.startswith(_PERHAPS) or word.endswith(_PERHAPS) for word in words)
    return NameKind.PERHAPS if is_part or "key" in words[:-1] else NameKind.NOTHING


PATTERN = r"""
    (?P<rest>[\w.-]{0,40}+)
    (?P<close>\\{0,3}["'`]?\]?)
    (?P<sign>
        \s{0,4}+:\s{0,4}[A-Za-z_][\w.\[\]|?\ ]{0,40}=\s{0,4}+(?=["'`])
      | (?:\[\d{0,6}\]|\ [A-Za-z]{1,12})?[ \t]{0,20}+(?::=|=>|!?={1,3}|:)(?:[ \t]{0,20}+|\s{0,40}+(?=\\{0,3}["'`]))
      | \s{0,4}[,;]?(?:\\n)?\s{0,40}\\{0,3}["']?[Vv]alue\\{0,3}["']?[ \t]{0,4}[:=][ \t]{0,4}+
      | (?<=["'])\s{0,4}+,\s{0,4}+(?=["'])
      | >(?=[^<>\n]{1,1024}</)
      | (?:\ (?:for|of|on|to)\ [\w.@/-]{1,40})?\ (?:is|was|ist|war|est|es|era|é|è)(?:\ ?:)?\ (?=\S)
      | [ \t]{1,4}+
    )
    (?:[bBrRuU]{1,2}(?=["']))?+
    (?P<value>(?!\\{0,3}["'`]?\[redacted\])(?:
        (?P<quote>\\{0,3}["'`])(?P<text>(?:(?!(?P=quote))(?:\\.|[^\\\n])){1,65536}+)(?:(?P=quote)|\Z)
      | (?P<bare>(?:[^\s"'`&;,)}\]\\<>|]|\\(?![nrt"'\\])){1,200}+)
    ))
"""


@dataclass(frozen=True, slots=True)
class _Given:
    """A name that is given a value, in the text where that stands."""

    match: re.Match[str]
    name: str
    start: int
    """Of the name."""

    @classmethod
    def of(cls, match: re.Match[str]) -> _Given:
        text, at = match.string, match.start()
        near = text[max(0, at - _LONGEST_NAME) : at]
        prefix = near[len(near.rstrip(_NAME_SIGNS)) :]
        start = at - len(prefix)
        if prefix[:1] in ("n", "r", "t") and text[start - 1 : start] == "\\" and text[start - 2 : start - 1] != "\\":
            # The end of a line inside a string, not a letter of the name.
            prefix, start = prefix[1:], start + 1
        return cls(match, prefix + text[at : match.end("rest")], start)

    def before(self, size: int) -> str:
        return self.match.string[max(0, self.start - size) : self.start]

    @property
    def sign(self) -> str:
        return self.match["sign"]

    @property
    def starts_line(self) -> bool:
        """Nothing but room, a bullet or `export` stands before the name."""
        start = r"(?:\A|\n|\\n)[ \t]{0,40}(?:-[ \t]{1,4})?(?:(?:export|set|ENV)[ \t]{1,4}|mot\ de\ )?\Z"
        return compiled(start).search(self.before(60)) is not None

    @property
    def ends_line(self) -> bool:
        return compiled(r"[ \t]*(?:\#[^\n]*)?(?:\n|\r|\\n|\Z)").match(self.match.string, self.match.end()) is not None

    @property
    def is_said(self) -> bool:
        """As people tell it: `the password for prod is: …`."""
        return compiled(r"\b(?:is|was|ist|war|est|es|era|é|è)\ ?:?\ \Z").search(self.sign) is not None

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-") and self.before(1) in ("", " ", "\t", "\n", '"', "'", "`", "[", "(")


def secret_span(match: re.Match[str]) -> Span | None:
    """Where the secret is in a match of `PATTERN`, or None when it is none."""
    given = _Given.of(match)
    kind = kind_of(given.name)
    if kind is NameKind.NOTHING and given.name.lower() == "key":
        # As people say it: my API key, the access key.
        before = compiled(r"(\w{2,16})\ \Z").search(given.before(20))
        kind = kind_of(f"{before[1]}_key") if before else kind
    if kind is NameKind.NOTHING:
        return None
    if not match["sign"].strip():
        return _word_span(given, kind)
    if kind is NameKind.PASSWORD and given.is_said and not match["quote"]:
        return _said_span(given)
    if match["quote"]:
        return match.span("text") if _is_secret_text(match["text"], kind, given.sign) else None
    if _is_literal(given):
        return _literal_span(given, kind)
    return _whole_word(match) if _is_secret_bare(given, kind) else None


def is_secret_argument(name: str, text: str) -> bool:
    """Whether a text that belongs to a name, such as an argument of a call, is a secret."""
    kind = kind_of(name)
    return kind is not NameKind.NOTHING and _is_secret_text(text, kind, "=")


_STATES_OF_PASSWORDS = """
    blank checked compromised correct encrypted exposed expired false fine gone hashed hidden incorrect invisible kept
    leaked long lost needed okay plain public rejected reset right safe salted saved secure sent short stored strong
    there true unchanged valid visible weak
"""
_STATES = frozenset(_STATES_OF_PASSWORDS.split())
_OWN = r"(?i:\b(?:my|our|mein|unser|mon|notre|mi|nuestra|mia|minha|moje|мой|的)\ ?)\Z"


def _said_span(given: _Given) -> Span | None:
    """A password that a person tells, up to the next room. A plain word is one where it is theirs and ends the line."""
    match = given.match
    start = match.start("value")
    said = compiled(r"\S{1,200}+").match(match.string, start)
    value = said[0].rstrip(".,;:!?)\"'") if said else ""
    if len(value) < SHORTEST or is_placeholder(value) or not without_references(value) or is_address(value):
        return None
    end = start + len(value)
    whole = compiled(r"[.!?]?\s*(?:\n|\Z)").match(match.string, end) is not None
    own = whole and value.lower() not in _STATES and compiled(_OWN).search(given.before(20)) is not None
    return (start, end) if own or is_mixed(value) or any(sign.isdigit() for sign in value) else None


def _whole_word(match: re.Match[str]) -> Span:
    """All of a value that is longer than what a pattern reads."""
    start, end = match.span("bare")
    rest = compiled(r"[A-Za-z0-9+/=_.~-]*+").match(match.string, end)
    return start, rest.end() if rest and end - start >= _LONGEST_BARE else end


def _is_secret_text(text: str, kind: NameKind, sign: str) -> bool:
    """For a value in quotes."""
    own = without_references(text)
    if len(own) < SHORTEST or is_placeholder(own):
        return False
    if is_random(own):
        return True
    if sign.strip() == "," or kind is NameKind.PERHAPS or is_label(own):
        return False
    if kind is NameKind.KEY:
        made = compiled(r"(?:tok|tkn|pat|sess)[_-][\w-]{6,}").fullmatch(own)
        return made is not None or (is_mixed(own) and not is_address(own))
    return kind is NameKind.PASSWORD or not is_address(own)


def _word_span(given: _Given, kind: NameKind) -> Span | None:
    """For an option that is followed by its value, and the lines of a netrc file."""
    match = given.match
    span = match.span("text") if match["quote"] else match.span("bare")
    if match["close"]:
        return None
    if given.is_option:
        own = without_references(match.string[slice(*span)])
        is_word = is_placeholder(own) or (own.isalpha() and own.isupper())
        return span if kind > NameKind.PERHAPS and own and own[0] not in "-=" and not is_word else None
    is_netrc = compiled(r"login\s{1,4}\S{1,128}\s{1,8}\Z").search(given.before(160))
    return span if kind is NameKind.PASSWORD and is_netrc and without_references(match.string[slice(*span)]) else None


def _is_literal(given: _Given) -> bool:
    """The value is what it says, not something that a program computes: an environment, a query, a list of settings."""
    if given.sign == ">" or (given.sign == "=" and given.is_option):
        return True
    if compiled(r"[A-Za-z_][\w.]*[(\[{]").match(given.match["bare"]):
        return False
    if given.sign.strip() == ":" and given.name.isupper():
        return given.starts_line
    if given.sign != "=":
        return False
    before = given.before(120)
    if given.name.isupper():
        return before[-1:] in ("", " ", "\t", "\n", ";", '"', "'", "`", "&") or given.starts_line
    if before[-1:] in ("?", "&", ";"):
        return True
    # A list of settings such as `host=h user=u password=p`, or a file of properties.
    listed = compiled(
        r"\b(?i:user|uid|username|host|server|dbname|database|login)[\w ]{0,12}=[^\s,;(]{1,80}[\s;]{1,4}\Z"
    )
    return listed.search(before) is not None or (before[-1:] in ("", "\n") and given.ends_line)


def _literal_span(given: _Given, kind: NameKind) -> Span | None:
    match = given.match
    start, end = match.span("bare")
    if given.sign == "=" and given.name.isupper() and given.starts_line:
        # Nothing ends such a value but room.
        tail = compiled(r"(?:[^\s\"'`\\]|\\(?![nrt\"'\\]))*").match(match.string, end)
        end = start + len(match.string[start : tail.end() if tail else end].rstrip(";,)&|"))
    value = match.string[start:end]
    own = without_references(value)
    if len(own) < SHORTEST or is_placeholder(own):
        return None
    if kind is NameKind.PERHAPS or (kind is NameKind.KEY and own.isdigit()):
        return (start, end) if is_random(own) else None
    if given.name.lower().endswith("pwd") and is_address(own):
        return None
    return start, end


_TYPE_WORDS = "any bool boolean bytes char false int nil none null number object str string text true void"
_TYPES = frozenset(_TYPE_WORDS.split())


def _is_secret_bare(given: _Given, kind: NameKind) -> bool:
    """For a value without quotes that may as well be an expression of a program."""
    value = given.match["bare"].rstrip(":.?")
    if len(value) < SHORTEST or compiled(r"[(\[{$<*@!%]|->|::|\A0[xX]\w{1,8}\Z").search(value) or is_placeholder(value):
        return False
    if given.match["close"] and value.lstrip("-").replace(".", "", 1).isdigit():
        return False  # A number of JSON.
    if is_random(value) and not _is_path(value):
        return True
    if kind is NameKind.PASSWORD and value.lower() not in _TYPES and not is_address(value):
        is_line = given.starts_line and given.ends_line
        is_setting = given.sign.startswith(":") and value.isalnum() and value.islower()
        has_digit = any(sign.isdigit() for sign in value)
        return is_mixed(value) or (is_line and is_setting) or (has_digit and is_line)
    return kind > NameKind.PERHAPS and is_mixed(value) and not _is_path(value)


def _is_path(value: str) -> bool:
    """Names with points between them: `config.v2.secret`."""
    return "." in value and all(
        part.isidentifier() and not is_random(part) for part in value.rstrip(".:").split(".") if part
    )
