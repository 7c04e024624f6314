"""Work of a run that is done at the same time, each piece in a thread with a store, models and a bench of its own.

What they tell is told by the thread of the run, and the account of money is one.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pawl.agent.inbox import Inbox
from pawl.agent.record import RunRecord
from pawl.agent.run_hooks import Hooking
from pawl.agent.talker import Talker
from pawl.agent.works import BenchWorks
from pawl.core.errors import Cancelled
from pawl.core.events import HookSaid, Metered, Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.models.ledger import Ledger
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project

T = TypeVar("T")
_TOLD = (Warned, HookSaid, Metered)
"""Words and calls of several at once are nobody's reading; each tells how it ended."""


@dataclass(frozen=True, slots=True)
class _Ended:
    number: int
    future: Future[Any]


@dataclass(slots=True, kw_only=True)
class SideBySide(Generic[T]):
    """Pieces of work by number, some at a time."""

    talker: Talker
    """That of the run, whose models and account all share."""
    ledger: Ledger
    work: Callable[[Talker, int], T]
    """Does one piece with a talker of its thread's own."""
    listen: Callable[[Any], object]
    prefix: Callable[[int], str] = lambda number: ""
    """The part of the record that belongs to a piece."""
    events: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _tokens: dict[int, CancelToken] = field(default_factory=dict)
    _over: bool = False
    """The rest is not needed, or all must end for another reason."""

    def ended(self, numbers: Sequence[int], most: int) -> Iterator[tuple[int, T | None]]:
        """The pieces as they end; None for one that was cancelled because of `stop`."""
        waiting = list(numbers)
        failures: list[BaseException] = []
        with ThreadPoolExecutor(most) as threads:
            try:
                while self._tokens or (waiting and not self._over):
                    while waiting and len(self._tokens) < most and not self._over:
                        self._start(threads, waiting.pop(0))
                    event = self.events.get()
                    if isinstance(event, _Ended):
                        yield from self._result(event, failures)
                    else:
                        self.listen(event)
            finally:
                self.stop()
        if failures:
            raise failures[0]

    def stop(self) -> None:
        self._over = True
        for token in self._tokens.values():
            token.request()

    def _result(self, ended: _Ended, failures: list[BaseException]) -> Iterator[tuple[int, T | None]]:
        self._tokens.pop(ended.number)
        error, cancel = ended.future.exception(), self.talker.cancel
        if error is None:
            yield ended.number, ended.future.result()
        elif self._over and not failures and isinstance(error, Cancelled) and not (cancel and cancel.requested):
            yield ended.number, None
        else:
            failures.append(error)
            self.stop()

    def _start(self, threads: ThreadPoolExecutor, number: int) -> None:
        self._tokens[number] = CancelToken(above=self.talker.cancel)
        future = threads.submit(self._worked, number, self._tokens[number])
        future.add_done_callback(lambda done: self.events.put(_Ended(number, done)))

    def _worked(self, number: int, cancel: CancelToken) -> T:
        shop = self.talker.shop
        with Project.open(shop.config, Path(shop.workspace)) as own, ExitStack() as closing:
            own.run_id, own.stop = shop.run_id, cancel
            return self.work(self._own(own, number, cancel, closing), number)

    def _own(self, shop: Project, number: int, cancel: CancelToken, closing: ExitStack) -> Talker:
        """A talker over a store and models of this thread's own, with the one account."""
        talker = self.talker
        record = RunRecord(shop, talker.record.order, talker.record.run, prefix=self.prefix(number))
        # The interpreters are those of the verifier of the run.
        works = BenchWorks(shop, record, lambda: replace(talker.works.verifier, shop=shop, listen=lambda verdict: None))
        closing.callback(works.close)
        models = closing.enter_context(Models(talker.config, used=record.data.scripts or talker._opened()[0].used))
        models.router.ledger = self.ledger
        return replace(
            talker,
            shop=shop,
            record=record,
            works=works,
            listen=lambda event: self.events.put(event) if isinstance(event, _TOLD) else None,
            inbox=Inbox(),
            hooking=Hooking(
                shop=shop,
                order=record.order,
                run=record.run,
                conversation=talker.conversation,
                tell=self.events.put,
                cancel=cancel,
            ),
            cancel=cancel,
            _models=models,
            _telemetry=closing.enter_context(Telemetry.open(talker.config.environment)),
        )
