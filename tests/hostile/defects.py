"""Old defects that can be put back for one call, to see that the net notices: functions or constants are replaced.

The product knows nothing of this. A row is looked up before anything is forked, so that a stale one names itself, and
is put back in the process that is about to be Pawl.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Stories = Mapping[str, Callable[..., None]]
Old = Any
"""The function or constant as it stands."""


@dataclass(frozen=True)
class Defect:
    item: int
    """Which of the old findings it is."""
    noticed: tuple[str, ...]
    """The stories that must tell of it."""
    places: Mapping[str, Callable[[Old], object]]
    """By `module:attribute`, where the attribute may be one of a class: what replaces it, made of what stands there."""

    def resolved(self) -> Callable[[], None]:
        """Puts it back when called; a name that is gone is a mistake of this table and told at once."""
        found = []
        for place, replacing in self.places.items():
            module, _, path = place.partition(":")
            holder: object = importlib.import_module(module)
            *above, last = path.split(".")
            for name in above:
                holder = getattr(holder, name)
            found.append((holder, last, replacing(getattr(holder, last))))
        return lambda: [setattr(*each) for each in found] and None


def _always(value: object) -> Callable[[Old], object]:
    return lambda old: lambda *words, **options: value


def _plain_git(old: Old) -> object:
    def run(self: object, *words: str, **options: object) -> bytes:
        for line in ("add -A", "diff HEAD", "log -p -1"):
            subprocess.run(["git", *line.split()], capture_output=True, timeout=5, check=False)
        return old(self, *words, **options)

    return run


def _on_host(old: Old) -> object:
    def run(bench: object, argv: tuple[str, ...], payload: bytes, limits: Any, cancel: object, hides: object) -> object:
        from pawl.workspace.hook_runner import run_on_host

        words = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', os.getcwd(), *argv)
        return run_on_host(words, payload, seconds=limits.seconds, environment={"PATH": "/usr/bin:/bin"}, cancel=cancel)

    return run


def _followed(old: Old) -> object:
    def one(self: Any, tree: object, path: str) -> list[str]:
        place = Path(self.workspace, path)
        if place.is_dir():
            return [f"{path}/{each.name}" for each in place.iterdir()]
        if place.is_file():
            self.contents[path] = place.read_bytes()
        return []

    return one


def _first_masks(old: Old) -> object:
    def masks(self: object) -> object:
        found = old(self)
        return dataclasses.replace(found, secrets=frozenset(sorted(found.secrets)[:200]))

    return masks


def _used_up(old: Old) -> object:
    """What commands made counts among the 200."""

    def masks(self: object) -> object:
        found, state = old(self), os.environ["PAWL_STATE"]  # noqa: TID251
        made = sum(name.endswith(".pem") for _, _, names in os.walk(f"{state}/benches") for name in names)
        return dataclasses.replace(found, secrets=frozenset(sorted(found.secrets)[: max(0, 200 - made)]))

    return masks


def _by_the_lock(old: Old) -> object:
    return lambda shop, lacking, bench: hashlib.sha256(repr((lacking.lock, lacking.ways)).encode()).hexdigest()[:32]


def _any_file(old: Old) -> object:
    @contextlib.contextmanager
    def opened(path: str, *, follow: bool = True) -> Iterator[object]:
        with open(path, "rb") as file:
            yield file

    return opened


def _guessable(old: Old) -> object:
    return lambda state, number: (f".pawl-tmp-{hashlib.sha256(os.fsencode(state)).hexdigest()[:8]}-{number}",)


def _no_other(old: Old) -> object:
    def folder(self: Any) -> str:
        os.mkdir(self.staging[0], 0o700, dir_fd=self.tree.fd)
        return self.staging[0]

    return folder


def _fewer_names(old: Old) -> object:
    new = {".yarnrc.yml", ".pnpmfile.cjs", ".gdbinit", ".pdbrc", ".pdbrc.*", "opencode.json", ".crush.json"}

    def laid_out(*words: object) -> object:
        found = old(*words)
        return dataclasses.replace(found, protected=tuple(each for each in found.protected if each not in new))

    return laid_out


def _first_words(old: Old) -> object:
    from pawl.core.display import Shown

    return lambda tool, arguments, whole=False: Shown((str(arguments)[:200],))


def _first_in_path(old: Old) -> object:
    return lambda name, environment: shutil.which(name, path=environment["PATH"]) or ""


def _with_the_folder(old: Old) -> object:
    """Starts interpreters that look for modules in the folder they stand in."""

    def start(words: list[str], **options: object) -> object:
        return old.Popen([word for word in words if word != "-P"], **options)

    return types.SimpleNamespace(**{**vars(old), "Popen": start})


def _any_netlink(old: Old) -> object:
    def assemble(items: list[Any]) -> bytes:
        at = items.index("netlink") + 2
        return old([*items[:at], dataclasses.replace(items[at], otherwise="allow"), *items[at + 1 :]])

    return assemble


def _shared_network(old: str) -> str:
    return (
        "from pawl.sandbox import namespaces as n; old = n._namespaces; "
        f"n._namespaces = lambda network: (*old(network), '--share-net'); {old}"
    )


def _links_of_the_path(old: Old) -> object:
    def installed(search_path: str, workspace: str, home: str) -> Iterator[str]:
        yield from old(search_path, workspace, home)
        for entry in search_path.split(":"):
            yield os.path.dirname(os.path.realpath(f"{entry}/node"))

    return installed


DEFECTS: Mapping[str, Defect] = {
    "files through links": Defect(
        8,
        ("named files",),
        {"pawl.settings.files:write_given": lambda old: lambda path, data, *words: path.write_bytes(data)},
    ),
    "links of the PATH": Defect(
        3, ("links on the PATH",), {"pawl.workspace.environments:_installed": _links_of_the_path}
    ),
    "git as it is configured": Defect(
        1,
        (
            "commit with git clean",
            "commit with git process",
            "commit with git promisor",
            "commit with all else that git runs",
        ),
        {"pawl.workspace.git:Git.ask": _plain_git},
    ),
    "hooks on the host": Defect(2, ("rewritten hook",), {"pawl.workspace.hook_runner:run_on_bench": _on_host}),
    "any program as a hook": Defect(
        2,
        ("hook that an agent can write",),
        {"pawl.workspace.hook_runner:_checked_program": lambda old: lambda program, workspace: program},
    ),
    "trust in links": Defect(
        2,
        ("linked settings",),
        {
            "pawl.settings.trust:_Reading._one": _followed,
            "pawl.settings.trust:ProjectFiles.digests": lambda old: property(
                lambda self: dict.fromkeys(self.contents, "link")
            ),
        },
    ),
    "a program of the workspace": Defect(
        2, ("gh of the workspace",), {"pawl.agent.specification.task_issues:host_program": _first_in_path}
    ),
    "a module of the workspace": Defect(
        2,
        ("modules that shadow Pawl",),
        {"pawl.agent.mcp_server:subprocess": _with_the_folder, "pawl.ui.cli.queue:subprocess": _with_the_folder},
    ),
    "200 secrets": Defect(3, ("secrets in number",), {"pawl.workspace.masks:HiddenSearch.masks": _first_masks}),
    "a rule that commands use up": Defect(
        3, ("secrets planted",), {"pawl.workspace.masks:HiddenSearch.masks": _used_up}
    ),
    "a secret by one name": Defect(
        3,
        ("secrets by other names",),
        {
            "pawl.workspace.masks:HiddenSearch._same_files": _always(()),
            "pawl.workspace.masks:HiddenSearch._linked": _always(()),
        },
    ),
    "rules for tools alone": Defect(
        4, ("denied path",), {"pawl.settings.permissions:Permissions.judge_changes": _always(lambda change: None)}
    ),
    "a runner that can be shadowed": Defect(
        5,
        ("shadowed runner",),
        {
            "pawl.checks.steps:starts_runner": _always(False),
            "pawl.checks.steps:watched": _always(()),
            "pawl.checks.verifier:shadowing": _always(()),
        },
    ),
    "packages by their lock alone": Defect(
        6, ("installed in another workspace",), {"pawl.checks.packages:_key": _by_the_lock}
    ),
    "verdicts over edits in place": Defect(6, ("installed module edited",), {"pawl.checks.cache:stamps": _always(())}),
    "the machine's network for servers": Defect(7, ("dev server",), {"pawl.checks.dev_process:START": _shared_network}),
    "links judged alone": Defect(8, ("two links",), {"pawl.workspace.gate:LinkJudge.faults": _always({})}),
    "questions cut short": Defect(9, ("hidden middle",), {"pawl.agent.run_hooks:shown_call": _first_words}),
    "raw answers": Defect(
        9,
        ("terminal output injection: in an answer",),
        {
            "pawl.ui.screen.screen:safe_words": lambda old: str,
            "pawl.core.display:SafeWords.feed": lambda old: lambda self, text: text,
        },
    ),
    "any file is read": Defect(10, ("endless settings", "odd files"), {"pawl.settings.files:opened": _any_file}),
    "patterns that begin again": Defect(
        10,
        ("long lines",),
        {"pawl.agent.specification.analysis:_REQUIREMENT": lambda old: re.compile(r"(?m)^\s*[-*]\s+(?P<id>FR-\d+)")},
    ),
    "staging that can be guessed": Defect(
        11,
        ("planted staging",),
        {
            "pawl.workspace.promotion:staging_names": _guessable,
            "pawl.workspace.writer:Writer._staging_folder": _no_other,
        },
    ),
    "values of tokens": Defect(12, ("value of a token",), {"pawl.workspace.project:register_secrets": _always(None)}),
    "names that were not protected": Defect(
        12, ("automation poisoning: newer names",), {"pawl.settings.guardrails:_laid_out": _fewer_names}
    ),
    "special bits": Defect(
        12,
        ("special bits",),
        {"pawl.workspace.gate:adds_bits": _always(False), "pawl.workspace.capture:adds_bits": _always(False)},
    ),
    "repositories in folders": Defect(
        12,
        ("repository in a folder",),
        {
            "pawl.workspace.gate:in_repositories": _always(frozenset()),
            "pawl.workspace.capture:in_repositories": _always(frozenset()),
            "pawl.code.patch_change:in_repositories": _always(frozenset()),
        },
    ),
    "any netlink": Defect(12, ("netlink",), {"pawl.sandbox.namespaces:_assemble": _any_netlink}),
}
