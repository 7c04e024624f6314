"""Where a model is asked and how its server departs from its wire format, as data."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from importlib import resources
from typing import Annotated
from urllib.parse import urlsplit

from pawl.core.dialogue import StopReason
from pawl.core.errors import NotAuthorized
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import AtLeast, written
from pawl.settings.tables import read_settings

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
    tables = tomllib.loads((resources.files("pawl.models") / "wires.toml").read_text("utf-8"))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds, all by the monotonic clock. Pings are no progress."""

    connect: float = 10.0
    first_byte: float = 120.0
    """From the connection to the first thing that the model says."""
    idle: float = 60.0
    """Between two things that the model says."""
    whole: float = 600.0
    """For everything, retries included."""


def quirks_of(table: Mapping[str, object]) -> Quirks:
    """Quirks from a configuration; `ConfigError` names every mistake."""
    return read_settings(Quirks(), "quirks", table)
