"""Who serves models, where, how servers depart from their wire format, and what models can do, all as data.

The tables that come with Pawl, and the user's laid over them.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated
from urllib.parse import urlsplit

from pawl.core.dialogue import StopReason
from pawl.core.errors import ConfigError, NotAuthorized, UnknownModel
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import (
    AtLeast,
    data_table,
    names_of,
    nearest,
    raise_mistakes,
    read_json,
    read_settings,
    read_table,
    written,
)
from pawl.settings import files as bounded

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Wire(StrEnum):
    """A format that servers of models speak."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class ReasoningSwitch(StrEnum):
    """How a server is told to reason or not to."""

    NATIVE = ""
    """As the wire format has it: `thinking`, `thinkingConfig`, and nothing in the OpenAI format."""
    NONE = "none"
    EFFORT = "effort"
    """`reasoning_effort`."""
    OBJECT = "object"
    """`reasoning: {enabled}`."""
    THINKING = "thinking"
    """Anthropic's, with a budget of tokens."""
    ADAPTIVE = "adaptive"
    """Anthropic's, the model sets the amount itself."""
    CONFIG = "thinking_config"
    """Gemini's."""
    TEMPLATE = "template"
    """`chat_template_kwargs: {enable_thinking}`."""


class SchemaCarrier(StrEnum):
    """How the schema of an answer is sent."""

    NATIVE = ""
    """As the wire format has it: `json_schema`, `tool`, `response_json_schema`."""
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    """The server only promises JSON; the schema goes into the system text."""
    TOOL = "tool"
    """A tool that must be called; its input is the answer."""
    RESPONSE_SCHEMA = "response_schema"
    RESPONSE_JSON_SCHEMA = "response_json_schema"
    NONE = "none"
    """The schema goes into the system text and nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """One format, as `wires.toml` has it."""

    key_header: str
    key_prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    listing: str
    reasoning: ReasoningSwitch
    schema: SchemaCarrier
    stops: Mapping[str, StopReason]
    broken: frozenset[str] = frozenset()


@functools.cache
def wire_formats() -> Mapping[str, WireFormat]:
    tables = data_table("pawl.models", "wires.toml")
    return {name: written(WireFormat, table) for name, table in tables.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """How a server departs from its format. Every field has a name that a configuration file can use."""

    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    seed: bool = True
    temperature: bool = True
    top_p: bool = True
    stop: bool = True
    stream: bool = True
    stream_options: bool = True
    done_mark: bool = True
    """The OpenAI format ends with `[DONE]`; without this, a finish reason and a clean end are enough."""
    cache_marks: bool = True
    """Only the Anthropic format has them."""
    reasoning: ReasoningSwitch = ReasoningSwitch.NATIVE
    reasoning_on: str = "medium"
    """The effort or the level when it is on."""
    reasoning_off: str = ""
    """The effort or the level when it is off, for Gemini also a number of tokens; empty to say nothing."""
    reasoning_budget: Annotated[int, AtLeast(1)] = 4096
    """Tokens on top of the answer's own."""
    thought_field: str = ""
    """The field in which the OpenAI format wants earlier reasoning back; empty for never."""
    schema: SchemaCarrier = SchemaCarrier.NATIVE
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model at its server. The key shows in no representation and no message."""

    wire: Wire
    base_url: str
    name: str
    """The server's name for the model."""
    provider: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    """The variable that held it, for advice."""
    quirks: Quirks = field(default_factory=Quirks)

    def __post_init__(self) -> None:
        # The key is checked here because a header that cannot be written would be quoted in an error.
        if self.key and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise NotAuthorized(
                f"the key for {self.provider!r} has characters that no key has",
                advice=f"look for a line break, a space or quotes around it in {self.key_name or 'where it is set'}",
            )

    @property
    def model(self) -> str:
        return f"{self.provider}/{self.name}"

    @property
    def host(self) -> str:
        """The server as messages name it: no user, no path, no query."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""

    @property
    def is_in_the_clear(self) -> bool:
        """A key would go to another machine without encryption."""
        parts = urlsplit(self.base_url)
        return bool(self.key) and parts.scheme == "http" and parts.hostname not in LOOPBACK

    @property
    def key_advice(self) -> str:
        """Advice on a key that is refused."""
        return f"check that {self.key_name or 'it'} is whole, valid and allowed this model"

    @property
    def format(self) -> WireFormat:
        return wire_formats()[self.wire]

    @property
    def reasoning(self) -> ReasoningSwitch:
        return self.quirks.reasoning or self.format.reasoning

    @property
    def schema(self) -> SchemaCarrier:
        return self.quirks.schema or self.format.schema


FIRST_WORD = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds, all by the monotonic clock. Pings are no progress."""

    connect: float = 10.0
    first_byte: float = FIRST_WORD
    """From the connection to the first thing that the model says."""
    idle: float = 60.0
    """Between two things that the model says."""
    whole: float = 600.0
    """For everything, retries included."""


def quirks_of(table: Mapping[str, object]) -> Quirks:
    """Quirks from a configuration; `ConfigError` names every mistake."""
    return read_settings(Quirks(), "quirks", table)


LOCAL = "local"
SCRIPTED = "scripted"
_OLLAMA_PORT = 11434


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A server of models: where it is, which format it speaks, and where its key comes from."""

    name: str = field(metadata={"own": True})
    wire: Wire
    base_url: str
    url_env: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    """Empty when it wants no key."""
    key_page: str = ""
    local: bool = False
    """Runs on the user's own machines, so that it costs nothing."""
    prices: str = ""
    """Its name in genai-prices; empty when its prices are unknown."""
    families: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    first_word_seconds: Annotated[float, AtLeast(1)] = FIRST_WORD
    """How long its models may be silent before they begin to answer; one that reads on a processor takes minutes."""
    quirks: Mapping[str, object] = field(default_factory=dict)
    """Fields of `endpoint.Quirks`, as a configuration has them."""

    def address(self, environment: Mapping[str, str]) -> str:
        """Its base URL; a variable that is set goes before the table."""
        for name in self.url_env:
            if value := environment.get(name, "").strip():
                return _ollama(value) if name == "OLLAMA_HOST" else _checked_url(value, f"the variable {name}")
        return self.base_url

    def key_name(self, environment: Mapping[str, str]) -> str:
        """The variable that holds the key; empty where none does."""
        return next((name for name in self.key_env if environment.get(name, "").strip()), "")

    def has_key(self, environment: Mapping[str, str]) -> bool:
        """Or needs none."""
        return not self.key_env or bool(self.key_name(environment))

    def key(self, environment: Mapping[str, str]) -> str:
        """The first of its variables that is set; empty where none is wanted, `NotAuthorized` where one is."""
        if name := self.key_name(environment):
            return environment[name].strip()
        if not self.key_env:
            return ""
        page = f"; create one at {self.key_page}" if self.key_page else ""
        raise NotAuthorized(
            f"there is no key for {self.name!r}",
            advice=f"set {' or '.join(self.key_env)} in the environment or in .env{page}",
        )


@functools.cache
def builtin() -> Mapping[str, Provider]:
    """The providers that come with Pawl."""
    return _merged({}, data_table("pawl.models", "providers.toml"))


def merged(tables: Mapping[str, object]) -> Mapping[str, Provider]:
    """The built-in providers with the user's [providers.NAME] tables laid over them; every mistake at once."""
    return _merged(builtin(), tables) if tables else builtin()


def _merged(known: Mapping[str, Provider], tables: Mapping[str, object]) -> Mapping[str, Provider]:
    mistakes: list[str] = []
    found = dict(known)
    for name, table in tables.items():
        where = f"providers.{name}"
        if name in (LOCAL, SCRIPTED) or not name or any(mark in name for mark in "/: \t\n"):
            mistakes.append(f"{where}: a provider cannot be called {name!r}")
        else:
            found[name] = _provider(name, table, known.get(name), mistakes)
    raise_mistakes("the providers are wrong", mistakes, advice=f"a table [providers.NAME] takes {names_of(Provider)}")
    return MappingProxyType(found)


def _provider(name: str, table: object, known: Provider | None, mistakes: list[str]) -> Provider:
    where, given = f"providers.{name}", table if isinstance(table, Mapping) else {}
    if known is None:
        mistakes += (f"{where}.{field} is missing" for field in ("wire", "base_url") if field not in given)
    base = known or Provider(name=name, wire=Wire.OPENAI, base_url="")
    read = read_table(Provider, table, where=where, mistakes=mistakes, base=base) or base
    if "base_url" in given and (mistake := _url_mistake(read.base_url)):
        mistakes.append(f"{where}.base_url {mistake}")
    quirks = {**base.quirks, **read.quirks}
    _check_quirks(quirks, where, mistakes)
    return replace(read, base_url=read.base_url.rstrip("/"), quirks=MappingProxyType(quirks))


def _check_quirks(quirks: Mapping[str, object], where: str, mistakes: list[str]) -> None:
    try:
        quirks_of(quirks)
    except ConfigError as error:
        mistakes.append(f"{where}.quirks {error.message}")


def _url_mistake(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits:
        return f"must be an address such as http://127.0.0.1:8000/v1, not {url!r}"
    if parts.username is not None or parts.query or parts.fragment:
        return "must not carry a user, a query or a fragment"
    return ""


def _checked_url(url: str, source: str) -> str:
    mistake = _url_mistake(url)
    if mistake:
        raise ConfigError(f"{source} {mistake}", advice="correct or unset it")
    return url.rstrip("/")


def _ollama(host: str) -> str:
    """OLLAMA_HOST may leave out the scheme and the port; 0.0.0.0 is where a server listens, not where it is."""
    bare = "://" not in host
    parts = urlsplit(_checked_url(f"http://{host}" if bare else host, "the variable OLLAMA_HOST"))
    name = "127.0.0.1" if parts.hostname in ("0.0.0.0", "::") else parts.hostname or ""
    shown = f"[{name}]" if ":" in name else name
    port = parts.port or (_OLLAMA_PORT if bare else 443 if parts.scheme == "https" else 80)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{shown}:{port}{path if path.endswith('/v1') else path + '/v1'}"


_SHAPES = "write provider/name (openai/gpt-5), local:FILE.gguf or scripted:FILE.toml"
_FILE = re.compile(rf"(?P<kind>{LOCAL}|{SCRIPTED}):(?P<file>.+)", re.DOTALL)
_SERVED = re.compile(r"(?P<provider>[^/:\s]+)/(?P<name>[^\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    """The parts of a model's name. For a file, the provider is `local` or `scripted` and the name is the path."""

    provider: str
    name: str

    @property
    def is_local_file(self) -> bool:
        return self.provider == LOCAL

    @property
    def is_script(self) -> bool:
        return self.provider == SCRIPTED

    @property
    def is_file(self) -> bool:
        return self.is_local_file or self.is_script

    def __str__(self) -> str:
        return f"{self.provider}{':' if self.is_file else '/'}{self.name}"

    @classmethod
    def parse(cls, text: str, providers: Mapping[str, Provider] | None = None) -> ModelName:
        """The name of a model that these providers serve; `UnknownModel` says what may have been meant."""
        providers = builtin() if providers is None else providers
        if not text.strip():
            raise UnknownModel("no model is named", advice=_SHAPES)
        if file := _FILE.fullmatch(text):
            return cls(provider=file["kind"], name=file["file"])
        served = _SERVED.fullmatch(text)
        if served is None or served["name"].startswith("/"):
            raise UnknownModel(f"{text!r} is not a model's name", advice=_likely(text, providers))
        if served["provider"] not in providers:
            raise UnknownModel(f"no provider {served['provider']!r}", advice=_known(served["provider"], providers))
        return cls(provider=served["provider"], name=served["name"])


def _likely(text: str, providers: Mapping[str, Provider]) -> str:
    """A bare name is often that of a well-known family."""
    for provider in providers.values():
        if any(fnmatch.fnmatchcase(text.lower(), family) for family in provider.families):
            return f"did you mean {provider.name + '/' + text!r}?"
    kind = text.partition(":")[0]
    if kind in (LOCAL, SCRIPTED):
        return f"name the file: {kind}:FILE"
    return _SHAPES


def _known(word: str, providers: Mapping[str, Provider]) -> str:
    called = {other: provider.name for provider in providers.values() for other in (provider.name, *provider.called)}
    meant = nearest(word, called)
    hint = f"did you mean {called[meant]!r}? " if meant else ""
    return (
        f"{hint}the providers are {', '.join(sorted(providers))}; "
        f"another one is added with base_url and wire in [providers.{word}]"
    )


class CallStyle(StrEnum):
    """How a model is asked for calls or for an answer by a schema."""

    NATIVE = "native"
    TEXT = "text"


class EditBlock(StrEnum):
    """A block of text that stands for an edit."""

    PATCH = "patch"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities and limits of a model."""

    tools: CallStyle = CallStyle.NATIVE
    schema: CallStyle = CallStyle.NATIVE
    context: Annotated[int, AtLeast(1)] = 128_000
    """Tokens that it reads and writes together."""
    max_output: Annotated[int, AtLeast(1)] = 8192
    quirks: Mapping[str, object] = field(default_factory=dict)
    """Fields of `endpoint.Quirks` in which the model departs from its provider."""
    images: bool = False
    """It reads pictures."""
    documents: bool = False
    """It reads PDFs."""
    edits: tuple[EditBlock, ...] = (EditBlock.PATCH, EditBlock.FILE)
    """Which blocks it is shown, where tools are text."""
    once: bool = False
    """It is not known to call tools well: it gets the context in one request, and answers in one."""


Rules = Mapping[str, Mapping[str, object]]
"""For a pattern of names, the fields of `Capabilities` in which its models differ."""


def capabilities(name: str, overrides: Rules = MappingProxyType({})) -> Capabilities:
    """The abilities of the model of that name, as far as they are known; later rules go over earlier ones."""
    found = Capabilities()
    for pattern, table in (*_builtin_rules().items(), *overrides.items()):
        if fnmatch.fnmatchcase(name, pattern):
            over = read_table(Capabilities, table, where=pattern, mistakes=[], base=found) or found
            found = replace(over, quirks={**found.quirks, **over.quirks})
    return found


MEASURED = "models.json"
"""The file of the state folder that holds what `pawl models --test` found."""


def measured_models(state: Path) -> dict[str, dict[str, object]]:
    """The measurements of each model; nothing where the file cannot be used."""
    try:
        read = read_json(bounded.read_text(state / MEASURED))
        known = read.items() if isinstance(read, dict) else ()
        return {str(name): one for name, one in known if isinstance(one["once"], bool)}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def measured_rules(state: Path) -> Rules:
    """The same as rules that go over Pawl's own and below the user's."""
    return {model: {"once": one["once"]} for model, one in measured_models(state).items()}


def rules(tables: Mapping[str, object]) -> Rules:
    """The user's [models."PATTERN"] tables; every mistake at once."""
    mistakes: list[str] = []
    found = {}
    for pattern, table in tables.items():
        where = f"models.{pattern!r}"
        read = read_table(Capabilities, table, where=where, mistakes=mistakes, base=Capabilities())
        if read is not None and isinstance(table, Mapping):
            _check_quirks(read.quirks, where, mistakes)
            found[pattern] = table
    advice = f'a table [models."PATTERN"] takes {names_of(Capabilities)}'
    raise_mistakes('the [models."PATTERN"] tables are wrong', mistakes, advice=advice)
    return found


@functools.cache
def _builtin_rules() -> Rules:
    return rules(data_table("pawl.models", "capabilities.toml"))


def endpoint_for(
    name: ModelName,
    providers: Mapping[str, Provider],
    environment: Mapping[str, str],
    overrides: Rules = MappingProxyType({}),
) -> Endpoint:
    """Where a provider's model is asked; `NotAuthorized` when the key is missing."""
    provider = providers[name.provider]
    return Endpoint(
        wire=provider.wire,
        base_url=provider.address(environment),
        key=provider.key(environment),
        key_name=provider.key_name(environment),
        name=name.name,
        provider=name.provider,
        quirks=quirks_of({**provider.quirks, **capabilities(str(name), overrides).quirks}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    context: Annotated[int | None, AtLeast(1)] = None
    """Tokens that it reads and writes together; None for 8192, or less when the model was made for less."""
    threads: Annotated[int | None, AtLeast(1)] = None
    """None for the cores that are not in use when it is loaded."""
    idle_seconds: float = 300.0
    """The memory is given back when nothing was asked for so long."""
    load_seconds: float = 600.0
    answer_seconds: float = 3600.0
    """For one answer; a slow machine reads a long prompt for minutes."""
    kept_prompts: int = 512 * 1024**2
    """Bytes in which the prompts of other conversations stay ready, so that roles can take turns."""


def local_settings(table: Mapping[str, object]) -> LocalSettings:
    """Settings from a configuration; `ConfigError` names every mistake."""
    return read_settings(LocalSettings(), "local", table)
