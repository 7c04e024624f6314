"""Extensions of the user's own: what packages beside Pawl bring by entry points, and only what the settings name of it.

Nothing is looked for where the settings name nothing, so that others do not pay for it. A repository has no say.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pawl.core.errors import ConfigError, PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Reader
from pawl.settings.config import Config
from pawl.settings.permission_rules import ToolKind, allowances

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LONGEST_REASON = 300
NOT_A_TOOL = "it must be an OwnTool, with a text and a dataclass for its input"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionSettings:
    """The table [extensions]: names of entry points."""

    tools: tuple[str, ...] = ()
    evaluator: str = ""
    retries: str = ""
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Extension:
    """One entry point, loaded."""

    name: str
    package: str
    value: Any

    @contextmanager
    def guarded(self, failure: type[PawlError] = ConfigError) -> Iterator[None]:
        """Whatever its code raises comes out as an error that names the package; an error of Pawl's stays as it is."""
        try:
            yield
        except (PawlError, KeyboardInterrupt):
            raise
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
            raise failure(
                f"the extension {self.name!r} of the package {self.package!r} failed: {why}",
                advice="update the package, or take the name out of [extensions]",
            ) from error


def extension_settings(config: Config) -> ExtensionSettings:
    """The table as it is meant; every mistake at once."""
    reader = Reader()
    read = reader.table(ExtensionSettings, config.tables.extensions, "extensions") or ExtensionSettings()
    for name in read.tools:
        if not _NAME.fullmatch(name):
            reader.mistakes.append(f"{name!r:.80} is not a valid tool name: lowercase letters, digits and _")
        elif name in allowances().tools:
            reader.mistakes.append(f"{name!r} is a tool of Pawl's own")
    reader.check(str(config.file))
    return replace(read, tools=tuple(dict.fromkeys(read.tools)))


def own_kinds(config: Config) -> Mapping[str, ToolKind]:
    """The kind of each tool that the settings name, by which stages and permissions go."""
    if not config.tables.extensions:
        return {}
    found: dict[str, ToolKind] = {}
    for name in extension_settings(config).tools:
        extension = loaded("pawl.tools", name)
        try:
            found[name] = ToolKind(extension.value.effect)
        except (AttributeError, ValueError) as error:
            raise wrong_extension(extension, NOT_A_TOOL) from error
    return found


@functools.cache
def loaded(group: str, name: str) -> Extension:
    """The entry point of that name; `ConfigError` where there is none, several, or one that cannot be loaded."""
    entries = _entries(group)
    found = [entry for entry in entries if entry.name == name]
    if not found:
        known = ", ".join(sorted({entry.name for entry in entries})) or "none"
        raise ConfigError(
            f"no package beside Pawl brings {name!r} ({group})",
            advice=f"install it into Pawl's own environment, or take it out of [extensions]; there are: {known}",
        )
    packages = sorted({_package(entry) for entry in found})
    if len(packages) > 1:
        raise ConfigError(
            f"{name!r} ({group}) is brought by several packages: {', '.join(packages)}", advice="uninstall all but one"
        )
    with Extension(name, packages[0], None).guarded():
        return Extension(name, packages[0], found[0].load())


def _entries(group: str) -> list[EntryPoint]:
    """Without the folder in which Pawl was started: that may be a repository's, which has no say here."""
    from importlib.metadata import distributions

    here = os.path.realpath(os.curdir)
    path = [one for one in sys.path if one and os.path.realpath(one) != here]
    return [entry for one in distributions(path=path) for entry in one.entry_points if entry.group == group]


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def wrong_extension(found: Extension, why: str) -> ConfigError:
    return ConfigError(
        f"the extension {found.name!r} of the package {found.package!r} cannot be used: {why}",
        advice="update the package, or take the name out of [extensions]; docs/extending.md has examples",
    )
