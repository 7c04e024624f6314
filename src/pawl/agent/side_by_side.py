"""Attempts side by side: each in a thread with a store, models and a bench of its own; the first that is verified wins.

What they tell is told by the thread of the run, and the account of money is one.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pawl.agent.attempting import Assignment
from pawl.agent.attempts import ModelAttempts
from pawl.agent.inbox import Inbox
from pawl.agent.judging import ClimbRecord, Tried
from pawl.agent.record import RunRecord
from pawl.agent.run_hooks import Hooking
from pawl.agent.talking import Talker
from pawl.agent.workplace import spent_in
from pawl.agent.works import BenchWorks
from pawl.core.errors import Cancelled
from pawl.core.tiers import Attempt, AttemptEnd, Iteration
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project

WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Ended:
    sample: int
    future: Future[Tried]


class SideBySide:
    """The attempts of one iteration, some at a time."""

    def __init__(self, asker: ModelAttempts, task: Assignment, at: Iteration, listen: Callable[[Any], None]) -> None:
        self._asker = asker
        self._task = task
        self._at = at
        self._listen = listen
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._tokens: dict[int, CancelToken] = {}
        self._ledger = asker.ledger(task.climb)
        self._over = False
        """One was verified, or all must end for another reason."""

    def tried(self, samples: Sequence[int], most: int) -> Iterator[Tried]:
        """The attempts as they end; after the first that is verified the others are cancelled, and say so."""
        waiting = list(samples)
        failures: list[BaseException] = []
        with ThreadPoolExecutor(most) as threads:
            try:
                while self._tokens or (waiting and not self._over):
                    while waiting and len(self._tokens) < most and not self._over:
                        self._start(threads, waiting.pop(0))
                    ended = self._next()
                    if ended is not None:
                        yield from self._result(ended, failures)
            finally:
                self._stop()
        if failures:
            raise failures[0]

    def _result(self, ended: _Ended, failures: list[BaseException]) -> Iterator[Tried]:
        self._tokens.pop(ended.sample)
        error = ended.future.exception()
        if error is None:
            tried = ended.future.result()
            if tried.attempt.end in (AttemptEnd.VERIFIED, AttemptEnd.OUT_OF_BUDGET):
                self._stop()
            yield tried
        elif self._over and not failures and isinstance(error, Cancelled) and not self._is_cancelled:
            yield self._cancelled(ended.sample)
        else:
            failures.append(error)
            self._stop()

    def _next(self) -> _Ended | None:
        """An attempt that has ended; what is told meanwhile is passed on. None while nothing happens."""
        if self._is_cancelled:
            self._stop()
        try:
            event = self._events.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            return None
        if isinstance(event, _Ended):
            return event
        self._listen(event)
        return None

    @property
    def _is_cancelled(self) -> bool:
        return self._asker.cancel is not None and self._asker.cancel.requested

    def _start(self, threads: ThreadPoolExecutor, sample: int) -> None:
        self._tokens[sample] = CancelToken()
        future = threads.submit(self._work, sample, self._tokens[sample])
        future.add_done_callback(lambda done: self._events.put(_Ended(sample, done)))

    def _stop(self) -> None:
        self._over = True
        for token in self._tokens.values():
            token.request()

    def _work(self, sample: int, cancel: CancelToken) -> Tried:
        shop = self._asker.shop
        with Project.open(shop.config, Path(shop.workspace)) as own, ExitStack() as closing:
            own.run_id = shop.run_id
            started = time.monotonic()
            tried = self._own(own, cancel, closing).tried(self._task, self._at, sample)
        return replace(tried, attempt=replace(tried.attempt, seconds=round(time.monotonic() - started, 3)))

    def _own(self, shop: Project, cancel: CancelToken, closing: ExitStack) -> ModelAttempts:
        """An asker over a store and models of this thread's own, with the one account."""
        asker = self._asker
        base = asker.record.base
        record = RunRecord(shop, base.order, base.run)
        verifier = replace(asker.verifier, shop=shop, cancel=cancel, listen=self._events.put)
        models = closing.enter_context(Models(asker.talker.config))
        models.router.ledger = self._ledger
        hooking = Hooking(
            shop=shop,
            order=base.order,
            run=base.run,
            conversation=asker.conversation,
            tell=self._events.put,
            cancel=cancel,
        )
        talker = Talker(
            shop=shop,
            record=record,
            works=BenchWorks(shop, record, verifier, cancel),
            conversation=asker.conversation,
            # Words of several models at once are nobody's reading.
            listen=lambda event: None,
            inbox=Inbox(),
            hooking=hooking,
            cancel=cancel,
            _models=models,
            _telemetry=closing.enter_context(Telemetry.open(asker.talker.config.environment)),
        )
        return replace(
            asker,
            shop=shop,
            record=ClimbRecord(record),
            talker=talker,
            verifier=verifier,
            listen=self._events.put,
            cancel=cancel,
            capped=True,
        )

    def _cancelled(self, sample: int) -> Tried:
        at = self._at
        name = f"{self._asker.conversation}.{at.tier}.{at.number}.{sample}"
        cost, tokens = spent_in(self._asker.record.base, name)
        attempt = Attempt(
            at=at,
            sample=sample,
            mode=self._task.climb.tier.mode,
            end=AttemptEnd.CANCELLED,
            refused=("another attempt was verified first",),
            cost=cost,
            tokens=tokens,
        )
        return Tried(attempt=attempt)
