"""Reads the header of a GGUF file: what the model is, how much it can read and how much memory its cache takes."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pawl.core.errors import Overloaded, UnknownModel
from pawl.models.local.child import ServerStart, free_memory, spare_threads
from pawl.settings.tables import read_settings

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    context: int | None = field(default=None, metadata={"least": 1})
    """Tokens that it reads and writes together; None for 8192, or less when the model was made for less."""
    threads: int | None = field(default=None, metadata={"least": 1})
    """None for the cores that are not in use when it is loaded."""
    idle_seconds: float = 300.0
    """The memory is given back when nothing was asked for so long."""
    load_seconds: float = 600.0
    answer_seconds: float = 3600.0
    """For one answer; a slow machine reads a long prompt for minutes."""
    kept_prompts: int = 512 * 1024**2
    """Bytes in which the prompts of other conversations stay ready, so that roles can take turns."""

    def context_of(self, header: Header) -> int:
        return self.context or min(header.context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def local_settings(table: Mapping[str, object]) -> LocalSettings:
    """Settings from a configuration; `ConfigError` names every mistake."""
    return read_settings(LocalSettings(), "local", table)


def start_of(header: Header, settings: LocalSettings, token: str) -> ServerStart:
    """The start of a child; `Overloaded` when this machine has too little memory for it now."""
    context = settings.context_of(header)
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
