"""The binary form of git's patches: contents and deltas, compressed and in base 85. Bounded whatever a patch claims."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

from pawl.core.patch_read_names import bad

LARGEST = 128 << 20
"""How many bytes are unpacked from one patch, all its files together."""
_LONGEST_NUMBER = 63
_COPY = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryContent:
    """What a binary file becomes: a content, or a delta against what it was."""

    line: int
    data: bytes
    is_delta: bool = False

    def applied(self, source: bytes) -> bytes:
        return _Delta(self.data, self.line).applied(source) if self.is_delta else self.data


def packed_line(line: bytes, number: int) -> bytes:
    """The bytes of one line of base 85, which its first letter counts."""
    letter, payload = line[:1], line[1:]
    if b"A" <= letter <= b"Z":
        size = letter[0] - ord("A") + 1
    elif b"a" <= letter <= b"z":
        size = letter[0] - ord("a") + 27
    else:
        raise bad(number, "expected a letter that counts the bytes of a binary line")
    if len(payload) != (size + 3) // 4 * 5:
        raise bad(number, f"expected {(size + 3) // 4 * 5} characters for {size} bytes, found {len(payload)}")
    try:
        return base64.b85decode(payload)[:size]
    except ValueError:
        raise bad(number, "expected base 85 characters") from None


def unpacked(packed: bytes, size: int, number: int) -> bytes:
    """The content that was compressed, which must be of the size the patch says."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, size + 1)
    except zlib.error:
        raise bad(number, "the binary content cannot be decompressed") from None
    if len(data) != size or not inflater.eof:
        raise bad(number, f"expected {size} bytes of binary content")
    return data


def check_room(size: int, number: int) -> None:
    if size > LARGEST:
        raise bad(number, f"the patch unpacks to more than {LARGEST} bytes", "copy large files themselves instead")


class _Delta:
    """Instructions that build a content from pieces of another and bytes of their own."""

    def __init__(self, data: bytes, line: int) -> None:
        self._data = data
        self._line = line
        self._at = 0

    def applied(self, source: bytes) -> bytes:
        if self._size() != len(source):
            raise bad(self._line, f"the binary delta starts from another file than one of {len(source)} bytes")
        size = self._size()
        check_room(size, self._line)
        target = bytearray()
        while self._at < len(self._data) and len(target) <= size:
            target += self._piece(source)
        if len(target) != size:
            raise bad(self._line, f"expected the binary delta to make {size} bytes")
        return bytes(target)

    def _piece(self, source: bytes) -> bytes:
        instruction = self._byte()
        if instruction & _COPY:
            start = self._number(instruction, 4)
            size = self._number(instruction >> 4, 3) or 0x10000
            if start + size > len(source):
                raise bad(self._line, "the binary delta copies from beyond the end of the file")
            return source[start : start + size]
        piece = self._data[self._at : self._at + instruction]
        self._at += instruction
        if not instruction or len(piece) != instruction:
            raise bad(self._line, "the binary delta is cut off")
        return piece

    def _number(self, present: int, size: int) -> int:
        """A little-endian number of which only the bytes marked as present are written."""
        return sum(self._byte() << (8 * at) for at in range(size) if present >> at & 1)

    def _size(self) -> int:
        """A number in groups of seven bits, the lowest first."""
        size, shift = 0, 0
        while shift < _LONGEST_NUMBER:
            byte = self._byte()
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return size
        raise bad(self._line, "expected a size in the binary delta")

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise bad(self._line, "the binary delta is cut off")
        self._at += 1
        return self._data[self._at - 1]
