"""The two workspaces behind the page: the user's, and that of the page's own sources, which is opened when it is first
asked for. What either of them becomes is built and shown from here."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pawl.agent.session import Session
from pawl.checks import dev_process
from pawl.core.change import EMPTY
from pawl.core.errors import PawlError
from pawl.core.run import RunState
from pawl.settings.config import Config
from pawl.ui.cli.encoder import Json
from pawl.ui.screen.run_report import changes_of
from pawl.ui.web.event_feed import EventFeed
from pawl.ui.web.own_page import OwnPage
from pawl.ui.web.page_files import PageFile, folder_files
from pawl.ui.web.preview_frame import PreviewFrame
from pawl.ui.web.threads import ProjectThread
from pawl.ui.web.web_session import WebSession
from pawl.workspace.project import Project

PREVIEW = "preview"


class WorkspaceSide:
    """One workspace: the session that works in it, the threads that read it, and its events."""

    def __init__(self, config: Config, workspace: Path, model: str) -> None:
        names = ("reader", "commands", "searches", "checks")
        self.threads = {name: ProjectThread(config, workspace, name) for name in names}
        """The reader answers at once; what takes long keeps nothing else waiting."""
        self.reader, self.commands = self.threads["reader"], self.threads["commands"]
        self.feed = EventFeed(self.reader)
        self.session = WebSession(config, workspace, self.feed.changed)
        self.session.wishes.model = model

    def close(self) -> None:
        self.session.close()
        for thread in reversed(self.threads.values()):
            thread.close()


class Pages:
    """Methods may be called from any thread."""

    def __init__(self, own: OwnPage, user: WorkspaceSide, frame: PreviewFrame, preview_url: str) -> None:
        self.own, self.user, self.frame = own, user, frame
        self.preview: Mapping[str, PageFile] = {}
        """The page as the change that waits would make it."""
        self._url = preview_url
        self._served: int | None = None
        """The process of the dev server that this page has started; 0 before it stands."""
        self._digest = ""
        self._trouble = ""
        self._side: WorkspaceSide | None = None
        self._opening = threading.Lock()

    def files(self, path: str) -> PageFile | None:
        path, _, build = path.partition("?")
        if path == "/watch.js":
            self.own.opened(build)
        return self.own.shown()[1].get(path)

    def preview_file(self, path: str) -> PageFile | None:
        return self.preview.get(path)

    def opened(self) -> WorkspaceSide:
        """The side of the page's own sources; they are unpacked at the first time, and brought up to date."""
        with self._opening:
            if self._side is None:
                self.own.prepare()
                model = self.user.session.wishes.model
                side = WorkspaceSide(self.own.config, self.own.folder, model)
                side.session.ordering = self.own.order
                side.session.changed = self._changed
                try:
                    side.commands.submit(self.own.begin).result()
                    side.session.start()
                except BaseException:
                    side.close()
                    raise
                self._side = side
                self.tell()
                # A run may wait since another start.
                side.commands.submit(self._looked)
            return self._side

    def bring_up(self) -> None:
        """Bring a copy up to date that is of other sources than Pawl has now; until then Pawl's own page is shown."""

        def open_it() -> None:
            try:
                self.opened()
            except PawlError as error:
                self.own.note(f"{error.message}: {error.advice}")

        if self.own.is_outdated:
            threading.Thread(target=open_it, name="pawl-update", daemon=True).start()

    def start_server(self, shop: Project, run: str, *, anew: bool) -> None:
        """The project's dev server. In the place of one that the user has started elsewhere it is the user's too, and
        goes on without the page."""
        known = dev_process.status(shop)
        own = known is None or known.pid == self._served
        if anew:
            dev_process.stop(shop)
        self._served = self._served or 0
        record, begun = dev_process.start(shop, dev_process.DevRequest(run=run))
        if begun and own:
            self._served = record.pid

    def _end_server(self, shop: Project) -> None:
        known = dev_process.status(shop)
        if known is not None and known.pid == self._served:
            dev_process.stop(shop)

    def close(self) -> None:
        if self._served is not None:
            # After a start that is still under way.
            with suppress(PawlError):
                self.user.commands.submit(self._end_server).result()
        with self._opening:
            if self._side is not None:
                self._side.close()

    def end_answers(self) -> None:
        """Those that never end by themselves, and those that take long."""
        self.frame.close()
        for side in filter(None, (self.user, self._side)):
            side.feed.close()
            for thread in side.threads.values():
                thread.stop.request()

    def tell(self) -> None:
        self.user.feed.changed()
        if self._side is not None:
            self._side.feed.changed()

    def previewed(self) -> Json:
        url, log = self._url if self.preview else "", self._trouble.splitlines()
        return {"running": bool(url), "url": url, "framework": "the changed page", "log": log, "ended": ""}

    def build_preview(self, shop: Project) -> None:
        """Build the change that waits, or the workspace as it stands."""
        waiting = Session(shop).runs(state=RunState.WAITING, limit=1)
        changes = changes_of(shop, Session(shop).report(waiting[0].id)) if waiting else EMPTY
        self._digest = changes.digest if waiting else ""
        self.preview = {}
        try:
            self.own.make(shop, self.own.builds / PREVIEW, changes)
            self._trouble, self.preview = "", folder_files(self.own.builds / PREVIEW)
        except PawlError as error:
            self._trouble = f"{error.message}\n{error.advice}"

    def _changed(self) -> None:
        """The state of the session in the page's sources is another one."""
        side = self._side
        if side is None:
            return
        side.feed.changed()
        if not side.session.is_working:
            with suppress(RuntimeError):  # It ends.
                side.commands.submit(self._looked)

    def _looked(self, shop: Project) -> None:
        """Build what there is to be seen now."""
        told = self.own.refresh(shop)
        waiting = Session(shop).runs(state=RunState.WAITING, limit=1)
        question = Session(shop).report(waiting[0].id).question if waiting else None
        digest = "" if question is None else question.digest
        if digest and digest != self._digest:
            self.build_preview(shop)
            told = True
        elif not digest and self._digest:
            self._digest, self.preview, told = "", {}, True
        if told:
            self.tell()
