"""Makes files with the header of a model and no weights."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

SMALL = {
    "general.architecture": "tiny",
    "tiny.context_length": 4096,
    "tiny.block_count": 2,
    "tiny.embedding_length": 64,
    "tiny.attention.head_count": 4,
    "tiny.attention.head_count_kv": 2,
    "tokenizer.tokens": ["a", "bc", "", "déjà"],
    "tokenizer.scores": [0.5, 1.5],
}


def header_bytes(fields: Mapping[str, object], version: int = 3) -> bytes:
    body = b"".join(_text(key) + _value(value) for key, value in fields.items())
    return struct.pack("<4sIQQ", b"GGUF", version, 0, len(fields)) + body


def model_file(path: Path, **changes: object) -> Path:
    fields = {**SMALL, **{f"tiny.{name}": value for name, value in changes.items()}}
    path.write_bytes(header_bytes(fields) + b"\0" * 64)
    return path


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case int():
            return struct.pack("<II", 4, value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
    raise TypeError(value)
