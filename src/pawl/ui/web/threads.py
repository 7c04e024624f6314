"""Threads that each have the project open, since what is open belongs to one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config
from pawl.workspace.project import Project

T = TypeVar("T")


class ProjectThread:
    """One thread with an open project; what is asked of it is done one after the other."""

    def __init__(self, config: Config, workspace: Path, name: str) -> None:
        self._config = config
        self._workspace = workspace
        self._pool = ThreadPoolExecutor(1, f"pawl-{name}")
        self._held = ExitStack()
        self._project: Project | None = None
        self.stop = CancelToken()
        """For what takes long: the end of the thread."""
        self._command: CancelToken | None = None

    def submit(self, work: Callable[[Project], T]) -> Future[T]:
        return self._pool.submit(lambda: work(self._opened()))

    async def run(self, work: Callable[[Project], T]) -> T:
        return await asyncio.wrap_future(self.submit(work))

    def run_command(self, work: Callable[[Project, CancelToken], T]) -> Awaitable[T]:
        """Like `run`, for what `interrupt` stops too."""

        def stoppable(shop: Project) -> T:
            self._command = stop = CancelToken(above=self.stop)
            try:
                return work(shop, stop)
            finally:
                self._command = None

        return self.run(stoppable)

    def interrupt(self) -> bool:
        """Stop the command that runs; whether there was one."""
        stop = self._command
        if stop is not None:
            stop.request()
        return stop is not None

    def hold(self, ending: Callable[[], object]) -> None:
        """Call this in the thread, before the project is closed."""
        self._held.callback(ending)

    def close(self) -> None:
        self.stop.request()
        self._pool.submit(self._held.close)
        self._pool.shutdown()

    def _opened(self) -> Project:
        if self._project is None:
            self._project = self._held.enter_context(Project.open(self._config, self._workspace))
        return self._project
