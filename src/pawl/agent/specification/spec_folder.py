"""The folder of a specification in the layout of Spec Kit: `specs/NNN-name/`, and `.specify/` beside it."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pawl.agent.specification.task_list import TaskList, read_tasks
from pawl.agent.specification.waves import PLAN, ExecutionPlan, planned
from pawl.core.change import EntryKind, NodeKind
from pawl.core.errors import NotFound, PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.git import opened
from pawl.workspace.project import Project

SPECS = "specs"
LARGEST = 1 << 20
"""Bytes of one of its files."""
LONGEST_NAME = 40
PARTS = ("spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md", "tasks.md", PLAN)
TEMPLATES = ".specify/templates"
CONSTITUTIONS = (".specify/memory/constitution.md", "memory/constitution.md")
FEATURE = ".specify/feature.json"
_NAME = re.compile(r"(?P<number>\d{3,})-[\w.-]+")
_IDLE = re.compile(r"a|an|and|as|at|for|from|i|in|into|it|my|of|on|or|our|so|that|the|this|to|want|we|with")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFolder:
    """One specification of a workspace."""

    shop: Project
    name: str
    """`001-user-login`."""

    @property
    def path(self) -> str:
        return f"{SPECS}/{self.name}"

    def read(self, part: str) -> str:
        """The text of one of its files; empty where it is not there."""
        return read_text(self.shop, f"{self.path}/{part}")

    def has(self, part: str) -> bool:
        return bool(self.read(part).strip())

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in one of its folders."""
        with suppress(PawlError, OSError):
            return tuple(self.shop.tree.names(f"{self.path}/{folder}"))
        return ()

    def tasks(self) -> TaskList:
        text = self.read("tasks.md")
        if not text.strip():
            raise UsageError(f"{self.path}/tasks.md does not exist", advice="write it, or run 'pawl spec tasks'")
        found = read_tasks(text, f"{self.path}/tasks.md")
        own = {*PARTS, *(f"contracts/{one}" for one in self.names("contracts"))}
        # A task that names a document of the specification reads it.
        kept = (replace(one, files=tuple(path for path in one.files if path not in own)) for one in found.tasks)
        return replace(found, tasks=tuple(kept))

    def planned(self, tasks: TaskList) -> ExecutionPlan:
        """The waves over the import graph of the workspace as it stands."""
        from pawl.code.librarian import workspace_import_graph

        def size(path: str) -> int:
            with suppress(PawlError, OSError):
                seen = self.shop.tree.look(path)
                return seen.size if seen is not None and seen.kind is NodeKind.FILE else 0
            return 0

        # A plan over a part of the graph would be another one the next time.
        return planned(tasks.tasks, workspace_import_graph(self.shop, seconds=math.inf).importers, size)

    def write(self, contents: Mapping[str, str], title: str) -> int | None:
        """Writes its files as one entry of the history; None where they stand there already."""
        changes = self.shop.writing(
            {f"{self.path}/{part}": text.encode("utf-8", "surrogateescape") for part, text in contents.items()}
        )
        if not changes:
            return None
        return self.shop.promote(self.shop.new_entry(EntryKind.EDIT, f"spec: {title}"), changes).entry


def read_text(shop: Project, path: str) -> str:
    try:
        return shop.tree.read(path, LARGEST).decode("utf-8", "surrogateescape")
    except NotFound:
        return ""
    except (PawlError, OSError) as error:
        raise UsageError(f"{path!r} cannot be read: {error}", advice="make it a plain file of text") from error


def constitution(shop: Project) -> str:
    """The path of the project's constitution; empty without one."""
    return next((path for path in CONSTITUTIONS if read_text(shop, path).strip()), "")


def spec_names(shop: Project) -> list[str]:
    with suppress(PawlError, OSError):
        kinds = shop.tree.kinds(SPECS)
        return sorted(one for one, kind in kinds.items() if kind is NodeKind.DIRECTORY and _NAME.fullmatch(one))
    return []


def found_spec(shop: Project, wanted: str = "") -> SpecFolder:
    """The one that is named by its name or number, or that Spec Kit or the branch names, or else the newest."""
    names = spec_names(shop)
    if wanted:
        wanted = wanted.rstrip("/").removeprefix(f"{SPECS}/")
        fits = [one for one in names if one == wanted or one.partition("-")[0] == wanted.zfill(3)]
        if len(fits) != 1:
            known = ", ".join(names) or "none"
            what = "several specifications are" if fits else "no specification is"
            raise UsageError(f"{what} called {wanted!r}", advice=f"there are: {known}")
        return SpecFolder(shop=shop, name=fits[0])
    if not names:
        raise UsageError("there is no specification in specs/", advice="begin one with: pawl spec specify 'IDEA'")
    said = [_feature(shop), _branch(shop)]
    newest = max(names, key=lambda one: (int(one.partition("-")[0]), one))
    return SpecFolder(shop=shop, name=next((one for one in said if one in names), newest))


def new_spec(shop: Project, idea: str) -> SpecFolder:
    """A folder that is not there yet, with the next number and a name from the words of the idea."""
    numbers = [int(name.partition("-")[0]) for name in spec_names(shop)]
    plain = unicodedata.normalize("NFKD", idea).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.findall(r"[a-z0-9]+", plain) if not _IDLE.fullmatch(word)][:5]
    name = "-".join(words)[:LONGEST_NAME].strip("-") or "feature"
    return SpecFolder(shop=shop, name=f"{max(numbers, default=0) + 1:03d}-{name}")


def _feature(shop: Project) -> str:
    """The folder that Spec Kit works on."""
    try:
        value = json.loads(read_text(shop, FEATURE) or "{}")
    except ValueError:
        return ""
    path = value.get("feature_directory", "") if isinstance(value, dict) else ""
    return path.rstrip("/").rpartition("/")[2] if isinstance(path, str) else ""


def _branch(shop: Project) -> str:
    with suppress(PawlError, OSError), opened(shop.tree) as repository:
        return repository.head().branch.removeprefix("refs/heads/")
    return ""
