"""Files that override or add to those that come with Pawl: a folder of the user's, or files that were read before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pawl.settings import files as bounded


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A folder with the contents of its files, by their paths in it."""

    name: str
    files: Mapping[str, bytes]


Folder = Path | ReadFolder


def files_of(folder: Folder, suffix: str) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Its files of that ending, sorted: the path in the folder, the path to show, and what reads the text."""
    if isinstance(folder, Path):
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield path.relative_to(folder).as_posix(), str(path), partial(bounded.read_text, path)
        return
    for name, data in sorted(folder.files.items()):
        if name.endswith(suffix):
            yield name, f"{folder.name}/{name}", partial(data.decode, "utf-8")
