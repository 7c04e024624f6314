"""Model files as models: each is served by a child of its own and asked in the OpenAI format over loopback."""

from __future__ import annotations

import mmap
import re
import secrets
import struct
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field, replace
from decimal import Decimal
from pathlib import Path

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, Retrying
from pawl.core.errors import AnswerInterrupted, ContextTooLong, Overloaded, UnknownModel, Unreachable
from pawl.core.lazy_dataclass import dataclass
from pawl.models.exchange import Transport, WireModel
from pawl.models.failures import Retries
from pawl.models.local_child import Life, ServerStart, free_memory, spare_threads
from pawl.models.providers import Endpoint, LocalSettings, Quirks, ReasoningSwitch, SchemaCarrier, Timeouts, Wire
from pawl.sandbox.cancel import CancelToken

PROVIDER = "local"
_ATTEMPTS = 2
_QUIRKS = Quirks(reasoning=ReasoningSwitch.TEMPLATE, schema=SchemaCarrier.JSON_SCHEMA)


_SERVER = (sys.executable, "-P", "-m", "pawl.models.local_child")
"""The folder that it runs in is not a place that modules are taken from."""


class LocalModel:
    """Fits `Model`, from several threads too: the child takes one request after the other. Offers no tools.

    Nothing runs before the first request; leaving it as a context manager ends the child.

    The library holds an answer to its schema, but for what it has no grammar for: bounds of numbers with fractions,
    `format`, `uniqueItems`, conditions. A schema that it cannot read is `RequestRejected`.
    """

    def __init__(
        self, path: str | Path, settings: LocalSettings | None = None, command: Sequence[str] = _SERVER
    ) -> None:
        """`UnknownModel` for what is no model. `command` is the server that is started, as `child.main` is."""
        self.header = read_header(Path(path).expanduser().absolute())
        self.settings = settings or LocalSettings()
        self.name = f"{PROVIDER}:{self.header.path}"
        self.context = _context(self.settings, self.header)
        self._command = tuple(command)
        self._life: Life | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """That of the process which holds the model in memory, while there is one."""
        process = None if self._life is None else self._life.process
        return process.pid if process is not None and process.returncode is None else None

    def __enter__(self) -> LocalModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            life, self._life = self._life, None
        if life is not None:
            life.end()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        """Loads the model where it is not. A process that dies is replaced once, and the request asked again."""
        started = time.monotonic()
        for attempt in range(1, _ATTEMPTS + 1):
            with self._serving(cancel) as life:
                waited = time.monotonic() - started
                try:
                    with closing(self._asked(life, request, cancel)) as events:
                        for event in events:
                            if isinstance(event, Answered):
                                event = Answered(self._own(event.answer, waited=waited, attempts=attempt))
                            yield event
                    return
                except (AnswerInterrupted, Unreachable) as error:
                    death = life.death()
                    if death is None:
                        raise
                    if attempt == _ATTEMPTS:
                        raise death from error
            yield Retrying(why=death.message, wait_seconds=0.0, attempt=attempt)

    @contextmanager
    def _serving(self, cancel: CancelToken | None) -> Iterator[Life]:
        """A process that serves, held for as long as the block lasts; started where there is none."""
        life = self._held()
        try:
            life.wait(cancel)
            yield life
        finally:
            life.leave()

    def _held(self) -> Life:
        with self._lock:
            if self._is_closed:
                raise Unreachable(f"{self.name!r} was closed", advice="load the model again")
            if self._life is None or not self._life.enter():
                start = start_of(self.header, self.settings, secrets.token_urlsafe(32))
                idle, load = self.settings.idle_seconds, self.settings.load_seconds
                self._life = Life(self._command, start, idle_seconds=idle, load_seconds=load)
            return self._life

    def _asked(self, life: Life, request: Request, cancel: CancelToken | None) -> Generator[ModelEvent, None, None]:
        limit = self.settings.answer_seconds
        endpoint = Endpoint(
            wire=Wire.OPENAI,
            base_url=f"{life.address}/v1",
            name=self.header.path.name,
            provider=PROVIDER,
            key=life.token,
            quirks=_QUIRKS,
        )
        # A transport is for one thread, and on loopback a new one costs next to nothing.
        with Transport() as transport:
            model = WireModel(
                endpoint,
                transport,
                timeouts=Timeouts(first_byte=limit, idle=limit, whole=limit),
                retries=Retries(tries=1),
            )
            try:
                yield from model.stream(request, cancel=cancel)
            except ContextTooLong:
                raise self._too_long() from None

    def _own(self, answer: ModelResponse, *, waited: float, attempts: int) -> ModelResponse:
        first = answer.first_token_seconds
        return replace(
            answer,
            model=self.name,
            cost=Decimal(0),
            seconds=answer.seconds + waited,
            first_token_seconds=None if first is None else first + waited,
            attempts=attempts,
        )

    def _too_long(self) -> ContextTooLong:
        most = self.header.context
        larger = f", set a larger context (this file reads up to {most})" if most and most > self.context else ""
        return ContextTooLong(
            f"the request is too long for {self.name!r}, which is loaded to read {self.context} tokens",
            advice=f"send less{larger}, or use another model",
        )


_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_PREAMBLE = struct.Struct("<4sIQQ")
_LENGTH = struct.Struct("<Q")
_KIND = struct.Struct("<I")
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_MOST_KEYS = 10_000
_LONGEST_KEPT = 4096
_SHARD = re.compile(r"-\d{5}-of-(?P<count>\d{5})\.gguf$")
_CACHE_ELEMENT = 2
"""Keys and values are kept as 16-bit numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The description that a model file carries. `fields` has the short values; long lists are left out."""

    path: Path
    size: int
    """Bytes of the weights, over all parts of the model."""
    fields: Mapping[str, object] = field(repr=False)

    @property
    def architecture(self) -> str:
        value = self.fields.get("general.architecture")
        return value if isinstance(value, str) else ""

    @property
    def context(self) -> int | None:
        """Tokens that the model was made to read; None when it does not say."""
        return self._count("context_length")

    def cache_bytes(self, tokens: int) -> int:
        """Memory for the keys and values of that many tokens, an estimate; 0 when the file does not say enough."""
        layers, heads, width = self._count("block_count"), self._count("attention.head_count"), self._width()
        if layers is None or heads is None or width is None:
            return 0
        groups = self._count("attention.head_count_kv") or heads
        return tokens * layers * groups * width * 2 * _CACHE_ELEMENT

    def _width(self) -> int | None:
        embedding, heads = self._count("embedding_length"), self._count("attention.head_count")
        return self._count("attention.key_length") or (embedding // heads if embedding and heads else None)

    def _count(self, name: str) -> int | None:
        value = self.fields.get(f"{self.architecture}.{name}")
        return value if isinstance(value, int) and value > 0 else None


def read_header(path: Path) -> Header:
    """The header of a model file; `UnknownModel` says why it is none that can be used."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise _unusable(
                    path, "is not a GGUF file", "name a file that ends in .gguf, as published for llama.cpp"
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                fields = _Reader(data).fields()
                size = len(data)
    except FileNotFoundError:
        raise _unusable(path, "does not exist", "check the path after local:") from None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}", "check the path after local:") from None
    except _Damaged as damage:
        raise _unusable(path, f"is damaged: {damage}", "download it again and compare its checksum") from None
    return Header(path=path, size=size + _other_shards(path), fields=fields)


class _Damaged(Exception):
    """The bytes do not make a header."""


class _Reader:
    """Walks the keys and values, never past the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> dict[str, object]:
        _, version, _, count = self._take(_PREAMBLE)
        if version not in _VERSIONS:
            raise _Damaged(f"version {version} is not known")
        if count > _MOST_KEYS:
            raise _Damaged(f"{count} keys")
        found: dict[str, object] = {}
        for _ in range(count):
            key = self._text()
            (kind,) = self._take(_KIND)
            value = self._value(kind)
            if value is not None:
                found[key] = value
        return found

    def _value(self, kind: int) -> object:
        """The value, or None for a list or a long text, which is passed over."""
        if kind == _TEXT:
            return self._text()
        if kind == _ARRAY:
            (inner,) = self._take(_KIND)
            (count,) = self._take(_LENGTH)
            self._skip(inner, count)
            return None
        if kind not in _SCALARS:
            raise _Damaged(f"a value of the unknown type {kind}")
        (value,) = self._take(struct.Struct(f"<{_SCALARS[kind]}"))
        return value

    def _skip(self, kind: int, count: int) -> None:
        if kind in _SCALARS:
            self._move(count * struct.calcsize(f"<{_SCALARS[kind]}"))
            return
        if kind != _TEXT:
            raise _Damaged(f"a list of the unknown type {kind}")
        # Vocabularies have hundreds of thousands of texts, so that this loop does nothing else.
        at, end, unpack, data = self._at, len(self._data), _LENGTH.unpack_from, self._data
        for _ in range(count):
            if at + _LENGTH.size > end:
                raise _Damaged("it ends too early")
            at += _LENGTH.size + unpack(data, at)[0]
        self._at = at
        self._move(0)

    def _text(self) -> str:
        (length,) = self._take(_LENGTH)
        start = self._at
        self._move(length)
        return self._data[start : start + min(length, _LONGEST_KEPT)].decode("utf-8", "replace")

    def _take(self, shape: struct.Struct) -> tuple[int, ...]:
        start = self._at
        self._move(shape.size)
        return shape.unpack_from(self._data, start)

    def _move(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise _Damaged("it ends too early")


def _other_shards(path: Path) -> int:
    """Bytes of the other parts of a model that is split over several files."""
    shard = _SHARD.search(path.name)
    if shard is None:
        return 0
    stem = path.name[: shard.start()]
    parts = path.parent.glob(f"{stem}-*-of-{shard['count']}.gguf")
    return sum(part.stat().st_size for part in parts if part != path)


def _unusable(path: Path, why: str, advice: str) -> UnknownModel:
    return UnknownModel(f"the model file {str(path)!r} {why}", advice=advice)


DEFAULT_CONTEXT = 8192
_OVERHEAD = 256 * 1024**2
"""Memory of the process besides the weights and the prompts."""


def _context(settings: LocalSettings, header: Header) -> int:
    return settings.context or min(header.context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def start_of(header: Header, settings: LocalSettings, token: str) -> ServerStart:
    """The start of a child; `Overloaded` when this machine has too little memory for it now."""
    context = _context(settings, header)
    needed = header.size + header.cache_bytes(context) + settings.kept_prompts + _OVERHEAD
    free = free_memory()
    if free is not None and needed > free:
        raise Overloaded(
            f"{header.path.name!r} needs about {_gigabytes(needed)} of memory, and {_gigabytes(free)} are free",
            advice="close something, set a smaller context, or use a smaller file",
        )
    return ServerStart(
        path=str(header.path),
        token=token,
        context=context,
        threads=settings.threads or spare_threads(),
        kept_prompts=settings.kept_prompts,
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
