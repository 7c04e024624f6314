"""What the user and the machine configure for git, read without git.

Only their own files are read, with the files that these include. No file of the workspace is, nor one that is reached
through it: an agent may have written it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.core.errors import PawlError
from pawl.sandbox.environment import is_below
from pawl.settings.tree import Tree
from pawl.workspace.ignore import path_expression
from pawl.workspace.paths import way_of
from pawl.workspace.repository import Repository, is_true, pairs, read_plain, settings_home

DEEPEST = 10
"""How many files may include one another, as for git."""
MOST_FILES = 100
MOST_CHARACTERS = 4 << 20
_HAS_URL = "hasconfig:remote.*.url:"


def user_values(environment: Mapping[str, str], workspace: Tree, repository: Repository) -> dict[str, str]:
    """By key, the last one wins; the repository's folder, branch and remotes choose what is included."""
    files = [environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"]
    if is_true(environment.get("GIT_CONFIG_NOSYSTEM", "")):
        files = []
    if "GIT_CONFIG_GLOBAL" in environment:
        files.append(environment["GIT_CONFIG_GLOBAL"])
    else:
        files += [f"{settings_home(environment)}/git/config", f"{environment.get('HOME', '')}/.gitconfig"]
    reading = _Reading(environment.get("HOME", ""), workspace.root, repository)
    for file in files:
        reading.read(file)
    return reading.found


@dataclass(slots=True)
class _Reading:
    home: str
    workspace: str
    repository: Repository
    found: dict[str, str] = field(default_factory=dict)
    files: int = 0
    characters: int = 0

    def read(self, file: str, depth: int = 0) -> None:
        text = read_plain(file)
        self.files += 1
        self.characters += len(text)
        if self.files > MOST_FILES or self.characters > MOST_CHARACTERS:
            return
        for key, value in pairs(text):
            self.found[key] = value
            section, _, name = key.partition(".")
            if name == "path" and section == "include":
                holds = True
            else:
                holds = section == "includeif" and name.endswith(".path") and self._holds(name[: -len(".path")], file)
            if holds and depth < DEEPEST:
                self._include(value, file, depth)

    def _include(self, value: str, file: str, depth: int) -> None:
        path = os.path.join(os.path.dirname(os.path.abspath(file)), self._expanded(value))
        if value and "\0" not in path and not any(is_below(one, self.workspace) for one in way_of(path)):
            self.read(path, depth + 1)

    def _expanded(self, path: str) -> str:
        return f"{self.home}{path[1:]}" if path.startswith("~/") else path

    def _holds(self, condition: str, file: str) -> bool:
        kind, _, pattern = condition.partition(":")
        if kind in ("gitdir", "gitdir/i"):
            return self._is_folder(pattern, file, re.IGNORECASE if kind == "gitdir/i" else 0)
        if kind == "onbranch":
            return _fits(pattern, self._branch())
        if condition.startswith(_HAS_URL):
            every = {**self.found, **self.repository.config}
            urls = [one for key, one in every.items() if key.startswith("remote.") and key.endswith(".url")]
            return any(_fits(condition[len(_HAS_URL) :], url) for url in urls)
        return False

    def _is_folder(self, pattern: str, file: str, flags: int) -> bool:
        linked = self.repository.linked
        folder = f"{self.workspace}/.git" if linked is None else linked[0]
        if pattern.startswith("./"):
            pattern = os.path.dirname(os.path.realpath(file)) + pattern[1:]
        elif not pattern.startswith(("/", "~/")):
            pattern = f"/**/{pattern}"
        homes = (self.home, os.path.realpath(self.home)) if pattern.startswith("~/") else ("",)
        patterns = [f"{home}{pattern[1:]}" if home else pattern for home in homes]
        return any(_fits(one, at, flags) for one in patterns for at in (folder, os.path.realpath(folder)))

    def _branch(self) -> str:
        try:
            return self.repository.head().branch.removeprefix("refs/heads/")
        except PawlError:
            return ""


def _fits(pattern: str, text: str, flags: int = 0) -> bool:
    """As git's patterns for paths do: a slash at the end means all below."""
    pattern += "**" if pattern.endswith("/") else ""
    try:
        expression = re.compile(path_expression(os.fsencode(pattern)), re.DOTALL | flags)
    except (ValueError, re.error):
        return False
    return expression.fullmatch(os.fsencode(text)) is not None
