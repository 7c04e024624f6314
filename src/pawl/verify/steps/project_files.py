"""Project files that cannot be read, such as a package.json with a comma too many: what they ask for is overlooked."""

from __future__ import annotations

import json
import posixpath
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pawl.core.errors import PawlError
from pawl.core.finding import Finding, Verdict
from pawl.verify.project import Folder
from pawl.verify.steps.step import Subject, amount, failed, passed

NAMES = ("package.json", "pyproject.toml")


def unreadable(files: Folder, folders: Iterable[str] = ("",)) -> tuple[Finding, ...]:
    """What is wrong with the project files of these folders."""
    return tuple(_wrong(files, [posixpath.join(folder, name) for folder in folders for name in NAMES]))


def _wrong(files: Folder, paths: Iterable[str]) -> Iterator[Finding]:
    for path in paths:
        try:
            text = files.read(path).decode("utf-8-sig") if files.exists(path) else "{}"
        except (PawlError, UnicodeDecodeError) as error:
            yield Finding(tool="syntax", message=f"it cannot be read: {error}", path=path)
            continue
        try:
            _read(path, text)
        except json.JSONDecodeError as error:
            yield Finding(tool="syntax", message=error.msg, path=path, line=error.lineno, column=error.colno)
        except tomllib.TOMLDecodeError as error:
            yield Finding(tool="syntax", message=str(error), path=path)


def _read(path: str, text: str) -> None:
    if path.endswith(".json"):
        json.loads(text)
    elif text != "{}":
        tomllib.loads(text)


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    folders: tuple[str, ...]
    name: str = "syntax (project files)"

    def run(self, subject: Subject) -> Verdict:
        found = unreadable(subject.files, self.folders)
        if not found:
            return passed(self.name, "they can be read")
        return failed(self.name, f"{amount(len(found), 'file')} that cannot be read", found)
