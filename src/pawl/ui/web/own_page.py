"""The page as the user has changed it: a copy of its sources, which is a workspace like any other, and what was built
of it. A page that does not come up gives way to the last one that did; the one that came with Pawl is always there."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pawl.agent.escalation import LadderWish, LoopWish, loop_of
from pawl.agent.works import commit_changes
from pawl.checks.packages import provide
from pawl.core import __version__
from pawl.core.change import EMPTY, ChangeSet, EntryKind, Node
from pawl.core.errors import GitFailed, PawlError, UsageError
from pawl.core.execution import Execution
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import difference, rebase
from pawl.core.run import Mode, RunRequest
from pawl.core.typed import read_toml
from pawl.settings.config import Config, host_program
from pawl.settings.guardrails import Decision
from pawl.ui.web.page_files import PageFile, folder_files, page_files
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project

SOURCES = "source.tar.gz"
STATE = "state.json"
MOST_BUILDS = 4
BUILD_SECONDS = 300.0
LOG_LINES = 12
_PACKAGE = resources.files("pawl.ui.web")
_LEFT_OUT = frozenset({"node_modules", "dist", ".git"})
_NODE = "changing the page needs Node.js 20 or newer with npm"
_GIT = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Kept beside the builds; a build is named by the digest of its sources, and the empty name is Pawl's own page."""

    factory: str = ""
    """The digest of the sources that came with Pawl when the copy was made or brought up to date."""
    build: str = ""
    good: str = ""
    """The last one that came up."""
    bad: tuple[str, ...] = ()
    tried: float = 0.0
    """When a browser opened a build that has not come up yet; below zero the seconds that it was looked at in vain
    before the tab was closed."""
    note: str = ""
    """For the user: why another page is shown than the sources say."""


class OwnPage:
    """May be asked from any thread; what takes a `Project` belongs to the thread of that one."""

    def __init__(self, config: Config, given: str, *, factory: bool) -> None:
        data = config.environment.get("XDG_DATA_HOME", "")
        root = (Path(data) if os.path.isabs(data) else config.home / ".local/share") / "pawl"
        self.folder, self.builds = root / "page", root / "page-builds"
        self.table: dict[str, Any] = read_toml((_PACKAGE / "own_page.toml").read_text("utf-8"))
        self._packed: Traversable = (Path(given) if given else _PACKAGE / "page") / SOURCES
        self.fixed = factory or not self._packed.is_file()
        """The user wants to see this page and no other, or there is nothing to build another one of."""
        self.factory = page_files(given)
        self._config = _with_node(config)
        self._lock = threading.RLock()
        self._read: tuple[str, Mapping[str, PageFile]] = ("", self.factory)

    # What is served.

    @property
    def state(self) -> PageState:
        try:
            found = json.loads((self.builds / STATE).read_text("utf-8"))
            return PageState(**{**found, "bad": tuple(found["bad"])})
        except (OSError, ValueError, TypeError, KeyError):
            return PageState()

    @property
    def is_outdated(self) -> bool:
        """There is a copy, and it is of other sources than Pawl has now."""
        return self.folder.exists() and self.state.factory != self.digest

    def shown(self) -> tuple[str, Mapping[str, PageFile]]:
        """The name of the build and its files."""
        with self._lock:
            state = self.state
            if state.tried > 0 and time.time() - state.tried > self.table["seconds"]:
                state = self.down(state.build)
            build = "" if self.fixed or self.is_outdated else state.build
            if self._read[0] != build:
                self._read = (build, self._with_watch(build) if build else self.factory)
            return self._read

    def opened(self, build: str) -> None:
        """A browser has begun to show the build."""
        with self._lock:
            state = self.state
            if build == state.build != state.good and state.tried <= 0:
                self._keep(replace(state, tried=time.time() + state.tried))

    def left(self, build: str) -> None:
        """The tab was closed, or loaded anew, before it was known whether the build comes up."""
        with self._lock:
            state = self.state
            if build == state.build and state.tried > 0:
                self._keep(replace(state, tried=state.tried - time.time()))

    def note(self, text: str) -> None:
        """For the user; empty when it was read."""
        with self._lock:
            self._keep(replace(self.state, note=text))

    def up(self, build: str) -> None:
        with self._lock:
            if build == self.state.build:
                self._keep(replace(self.state, good=build, tried=0.0))

    def down(self, build: str) -> PageState:
        """Go back to the last page that came up."""
        with self._lock:
            state = self.state
            if build and build == state.build:
                note = (
                    "Your changed page did not come up, so the last good one is shown. "
                    "Its sources are as you changed them: undo the change, or ask for another one, under 'This page'."
                )
                good = "" if build == state.good else state.good
                self._keep(replace(state, build=good, bad=(*state.bad, build)[-20:], tried=0.0, note=note, good=good))
            return self.state

    def _with_watch(self, build: str) -> Mapping[str, PageFile]:
        try:
            found = folder_files(self.builds / build)
        except UsageError:
            return self.factory
        words = f'<script src="watch.js?{build}" data-build="{build}" data-seconds="{self.table["seconds"]}"></script>'
        whole = found["/index.html"]
        head, tag, rest = whole.body.partition(b"<head>")
        index = replace(whole, body=head + tag + words.encode() + rest if tag else words.encode() + whole.body)
        watch = PageFile((_PACKAGE / "watch.js").read_bytes(), "text/javascript; charset=utf-8", lasting=False)
        return {**found, "/index.html": index, "/": index, "/watch.js": watch}

    def _keep(self, state: PageState) -> None:
        self.builds.mkdir(parents=True, exist_ok=True)
        new = self.builds / f"{STATE}.new"
        new.write_text(json.dumps(asdict(state)), "utf-8")
        new.replace(self.builds / STATE)

    # The workspace.

    @cached_property
    def config(self) -> Config:
        """The user's settings with those of this workspace."""
        tables, own = self._config.tables, self.table
        browser = next(filter(None, (host_program(one, self._config.environment) for one in own["browsers"])), "")
        steps = [
            {**step, "command": [word.replace("{browser}", browser) for word in step["command"]]}
            if browser or "{browser}" not in step["command"]
            # A check whose program is not there is told as left out.
            else {**step, "command": [next(one for one in own["browsers"] if "/" not in one)]}
            for step in own["verify"]["step"]
        ]
        return replace(
            self._config,
            settings=replace(self._config.settings, **own["settings"]),
            tables=replace(
                tables,
                permissions=_joined(tables.permissions, own["permissions"]),
                hooks=_joined(tables.hooks, own["hooks"]),
                trust=_joined(tables.trust, {"folders": [str(self.folder)]}),
                verify={**own["verify"], "step": steps},
            ),
        )

    def order(self, shop: Project, order: RunRequest) -> RunRequest:
        """A request to change something goes to the team; a question is a question."""
        if order.mode is Mode.CHAT:
            return order
        wish = LoopWish(objective=order.text, model=order.model)
        made, _ = loop_of(shop, wish, LadderWish(tiers=Path(str(_PACKAGE / self.table["tiers"]))))
        context = (*order.context, self.table["told"])
        return replace(order, loop=made.loop, budget={**made.budget, **order.budget}, context=context)

    @cached_property
    def packed(self) -> bytes:
        """The sources that came with Pawl."""
        if not self._packed.is_file():
            raise UsageError("this installation has no sources of the page", advice="build them with 'make web'")
        return self._packed.read_bytes()

    @cached_property
    def digest(self) -> str:
        try:
            return hashlib.sha256(self.packed).hexdigest()[:16]
        except UsageError:
            return self.state.factory

    def prepare(self) -> None:
        """Make the folder of the workspace where there is none; `UsageError` where nothing could be built there."""
        if not _has_node(self._config):
            advice = "install it (nodejs.org, or your system's package), then start 'pawl web' again"
            raise UsageError(_NODE, advice=advice)
        if self.folder.exists():
            return
        made = self.folder.with_name("page.new")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for path, data in _files(self.packed):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(data)
        for name in ("objects/pack", "refs/heads"):
            (made / ".git" / name).mkdir(parents=True)
        for name, text in _GIT.items():
            (made / ".git" / name).write_text(text)
        made.rename(self.folder)

    def begin(self, shop: Project) -> None:
        """Commit the sources as they came, bring them up to date, install their packages, and build."""
        known, note = self.state.factory, ""
        if known != self.digest:
            new = _nodes(shop, self.packed)
            if known:
                note = self._brought_up(shop, new)
            else:
                self._commit(shop, difference({}, new), f"The page as it comes with Pawl {__version__}")
            self._packages(shop)
            self._keep(replace(self.state, factory=self.digest))
            (self.builds / SOURCES).write_bytes(self.packed)
        self.refresh(shop, note)

    def _brought_up(self, shop: Project, new: Mapping[str, Node]) -> str:
        """The step from the old sources to the new ones, merged with the user's; what to tell of it."""
        update = difference(_nodes(shop, (self.builds / SOURCES).read_bytes()), new)
        now = shop.promoter.nodes(update.paths, update.blobs)
        over = difference({change.path: change.before for change in update}, now)
        merged = rebase(update, over, shop.store.blobs)
        title = f"the page of Pawl {__version__}"
        judge = shop.judge_changes()
        denied = [one.path for one in merged.changes if (said := judge(one)) and said.ruling is Decision.DENY]
        if changes := merged.changes.without(denied):
            entry = shop.new_entry(EntryKind.EDIT, f"update: {title}", allows_protected=True)
            done = shop.promote(entry, changes)
            self._commit(shop, done.changes, f"Update to {title}")
        if not merged.conflicts:
            return ""
        paths = sorted(one.path for one in merged.conflicts)
        kept = shop.keep(shop.new_entry(EntryKind.EDIT, f"update: {title}", "did not fit"), update.only(paths))
        return (
            f"Pawl {__version__} brings a new page, and this did not fit your changes: {', '.join(paths)}. "
            f"Yours stand there; what is new is entry {kept} of the history of 'This page'."
        )

    def _packages(self, shop: Project) -> None:
        """Those of the clone that Pawl runs from, else from the registry, into the workspace: every bench has them."""
        modules = self.folder / "node_modules"
        shutil.rmtree(modules, ignore_errors=True)
        lock, clone = self.folder / "package-lock.json", Path(str(_PACKAGE)).parents[3] / "web"
        installed = (clone / "node_modules/.installed").is_file()
        if installed and lock.is_file() and lock.read_bytes() == (clone / lock.name).read_bytes():
            shutil.copytree(clone / "node_modules", modules, symlinks=True, copy_function=_linked)
            return
        with open_bench(shop) as bench:
            provide(shop, bench)
            if bench.made_folders("node_modules"):
                bench.hand_out("node_modules", modules)

    @staticmethod
    def _commit(shop: Project, changes: ChangeSet, title: str) -> None:
        try:
            commit_changes(shop, changes, f"{title}\n")
        except GitFailed as error:
            shop.note("not committed", {"why": error.message})

    # Builds.

    def refresh(self, shop: Project, note: str = "") -> bool:
        """Build the workspace as it stands; whether there is something to tell then, such as the note."""
        build, own, state = _digest(self._sources()), _digest(_files(self.packed)), self.state
        build = "" if build == own else build
        if build in (state.build, *state.bad):
            self._keep(replace(self.state, note=note or state.note))
            return bool(note)
        try:
            if build and not (self.builds / build).is_dir():
                self.make(shop, self.builds / build)
        except PawlError as error:
            told = " ".join(filter(None, (note, f"{error.message}: {error.advice}")))
            self._keep(replace(self.state, bad=(*state.bad, build)[-20:], note=told))
            return True
        with self._lock:
            self._keep(replace(self.state, build=build, tried=0.0, note=note))
        self._sweep()
        return True

    def make(self, shop: Project, target: Path, changes: ChangeSet = EMPTY) -> None:
        """Build the workspace with the changes, on a bench."""
        with open_bench(shop) as bench:
            if changes:
                bench.apply(changes, shop.store.blobs)
            provide(shop, bench)
            limits = shop.config.settings.limits(BUILD_SECONDS)
            done = bench.run(Execution(argv=("npm", "run", "--silent", "build"), limits=limits))
            if not done.ok:
                said = f"{done.stdout.text}\n{done.stderr.text}".strip().splitlines()[-LOG_LINES:]
                raise UsageError("the page cannot be built, and stays as it was", advice="\n".join(said))
            shutil.rmtree(target, ignore_errors=True)
            self.builds.mkdir(parents=True, exist_ok=True)
            bench.hand_out("dist", target)

    def _sources(self) -> Iterator[tuple[str, bytes]]:
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [one for one in folders if one not in _LEFT_OUT]
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(self.folder).as_posix(), path.read_bytes()

    def _sweep(self) -> None:
        used = {self.state.build, self.state.good}
        others = [one for one in self.builds.iterdir() if one.is_dir() and one.name not in used]
        for one in sorted(others, key=lambda path: path.stat().st_mtime)[:-MOST_BUILDS]:
            shutil.rmtree(one, ignore_errors=True)


def _files(packed: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            found = archive.extractfile(member) if member.isfile() else None
            if found is not None:
                yield member.name, found.read()


def _with_node(config: Config) -> Config:
    """With the Node.js that scripts/web has put into Pawl's own environment, where the machine has none."""
    own = os.path.dirname(sys.executable)
    if _has_node(config) or not os.access(os.path.join(own, "npm"), os.X_OK):
        return config
    path = f"{config.search_path}{os.pathsep}{own}"
    return replace(config, search_path=path, environment={**config.environment, "PATH": path})


def _has_node(config: Config) -> bool:
    return all(host_program(name, config.environment) for name in ("node", "npm"))


def _nodes(shop: Project, packed: bytes) -> dict[str, Node]:
    with shop.store.blobs.batch():
        return {path: Node.file(shop.store.blobs.put(data)) for path, data in _files(packed)}


def _digest(files: Iterator[tuple[str, bytes]]) -> str:
    whole = hashlib.sha256()
    for path, data in sorted(files):
        whole.update(f"{path}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()[:16]


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _joined(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both; lists one after the other."""
    both = {name: [*theirs.get(name, ()), *value] for name, value in own.items() if isinstance(value, list)}
    return {**own, **theirs, **both}
