"""A first AGENTS.md for a workspace: what its files tell by themselves, as a change that the user is asked about."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from typing import Any

from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import PawlError, UsageError
from pawl.core.history import EntryKind
from pawl.workspace.project import Project

FILE = "AGENTS.md"
MOST_FOLDERS = 12
MOST_READ = 64 << 10
_NAMES = {"test": "Run the tests", "lint": "Lint", "types": "Check the types"}
_REQUEST = """\
Write the AGENTS.md of this workspace: what somebody who has never seen it must know to change it well. At most 60
lines of Markdown: how to build, test and lint (exact commands), how the code is laid out, conventions that the code
keeps, what to stay away from. Read the files that tell you; state nothing you have not seen. Begin from this draft,
which was made by looking at names only. Answer with the file's text alone, with no fence around it.

<draft>
{draft}
</draft>"""


def paths_of(shop: Project) -> tuple[str, ...]:
    """Every file of the workspace that may be named to a model: not ignored, not secret, not refused by a rule."""
    # Loaded here, because the terminal session opens without the index.
    from pawl.code.librarian import source_files

    shows = shop.read_gate().shows
    return tuple(stamp.path for stamp in source_files(shop).stamps() if shows(stamp.path))


def drafted(shop: Project) -> str:
    """The draft, from what the files tell by their names and a few of them by what they hold."""
    paths = paths_of(shop)
    lines = [f"# {shop.workspace.rpartition('/')[2]}", ""]
    languages = _languages(paths)
    if languages:
        lines += [f"Written in {', '.join(languages)}.", ""]
    commands = _commands(shop, paths)
    if commands:
        lines += ["## Commands", "", *(f"- {_NAMES[kind]}: `{words}`" for kind, words in commands), ""]
    lines += ["## Layout", "", *_layout(paths), ""]
    for name, text in _others(shop, paths):
        lines += [f"## From {name}", "", text.strip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def draft_request(draft: str) -> str:
    """What a model is asked, to make more of the draft."""
    return _REQUEST.format(draft=draft)


def answered_text(answer: str) -> str:
    """The text of the file in a model's answer, without a fence around it."""
    text = answer.strip()
    fenced = re.fullmatch(r"```[\w-]*\n(.*)\n```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).strip()
    if not text:
        raise UsageError("the model gave no text", advice="try again, or another model")
    return f"{text}\n"


def proposed(shop: Project, text: str) -> ChangeSet:
    """The change that makes this text the workspace's AGENTS.md; empty when it is that already."""
    before = shop.tree.node(FILE, shop.store.blobs) if shop.tree.look(FILE) is not None else None
    after = Node.file(shop.store.blobs.put(text.encode("utf-8", "replace")), before.mode if before else 0o644)
    return ChangeSet() if before == after else ChangeSet((Change(FILE, before, after),))


def promote(shop: Project, changes: ChangeSet) -> int:
    """After the user's own yes, for the file is a protected one; the number of the entry."""
    return shop.promote(shop.new_entry(EntryKind.EDIT, f"init: {FILE}", allows_protected=True), changes).entry


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("pawl.agent").joinpath("agents_file.toml").read_text("utf-8"))


def _languages(paths: Sequence[str]) -> list[str]:
    known = _tables()["languages"]
    counted = Counter(known[end] for path in paths if (end := path.rpartition(".")[2]) in known)
    return [name for name, _ in counted.most_common(4)]


def _commands(shop: Project, paths: Sequence[str]) -> list[tuple[str, str]]:
    """One command of each kind, in the order of the table."""
    found: dict[str, str] = {}
    for one in _tables()["command"]:
        if one["file"] not in paths or one["kind"] in found:
            continue
        if "holds" not in one or re.search(one["holds"], _text(shop, one["file"]), re.MULTILINE):
            found[one["kind"]] = one["words"]
    return [(kind, found[kind]) for kind in _NAMES if kind in found]


def _layout(paths: Sequence[str]) -> list[str]:
    counted = Counter(path.partition("/")[0] for path in paths if "/" in path)
    folders = [(name, count) for name, count in sorted(counted.items()) if not name.startswith(".")]
    lines = [f"- `{name}/`: {count} file{'s' if count != 1 else ''}" for name, count in folders[:MOST_FOLDERS]]
    top = [path for path in paths if "/" not in path and not path.startswith(".")][:MOST_FOLDERS]
    return [*lines, *([f"- at the top: {', '.join(f'`{path}`' for path in top)}"] if top else [])]


def _others(shop: Project, paths: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, _text(shop, name)) for name in _tables()["instructions"]["names"] if name in paths]


def _text(shop: Project, path: str) -> str:
    with suppress(PawlError, OSError):
        return shop.tree.read(path, MOST_READ).decode("utf-8", "replace")
    return ""
