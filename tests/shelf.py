"""Files in memory, and a librarian that looks for words in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pawl.code.code_model import Hit, Query
from pawl.code.outline import SourceOutliner
from pawl.core.errors import NotFound


@dataclass
class Folder:
    """Fits `Files` for whoever only reads."""

    contents: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        if path not in self.contents:
            raise NotFound(f"there is nothing at {path!r}")
        return self.contents[path]

    def write(self, path: str, data: bytes) -> None:
        self.contents[path] = data

    def delete(self, path: str) -> None:
        del self.contents[path]

    def exists(self, path: str) -> bool:
        return path in self.contents

    def walk(self, under: str = "") -> Iterable[str]:
        return sorted(path for path in self.contents if not under or path.startswith(f"{under}/"))


@dataclass
class Shelf:
    """A librarian that finds the files that hold a word of the query."""

    folder: Folder
    outliner: SourceOutliner

    def locate(self, query: Query, top: int) -> Sequence[Hit]:
        words = query.text.encode().split()
        found = [path for path in self.folder.walk() if any(word in self.folder.contents[path] for word in words)]
        return [self._hit(path, query.text.split()) for path in found[:top]]

    def refresh(self, paths: Iterable[str] | None = None) -> None:
        """Nothing is kept that could be old."""

    def _hit(self, path: str, words: list[str]) -> Hit:
        outlined = self.outliner.outline(self.folder, path).files[0] if path.endswith(".py") else None
        symbols = [one for one in (outlined.definitions if outlined else ()) if one.name in words]
        return Hit(path=path, score=1.0, reasons=("holds a word",), symbols=tuple(symbols))
