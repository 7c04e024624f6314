"""Finds the model for a name, opens it and asks it: within the budget, priced, and never one that nobody listed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pawl.core import errors
from pawl.core.dialogue import Answered, FellBack, ModelEvent, ModelResponse, Request
from pawl.models import Model
from pawl.models.configuration import ModelConfig, Routes
from pawl.models.endpoint import quirks_of
from pawl.models.ledger import Charge, Ledger
from pawl.models.providers import Capabilities, ModelName, Provider, capabilities, endpoint_for
from pawl.sandbox.cancel import CancelToken
from pawl.settings.extensions import loaded, wrong_extension

if TYPE_CHECKING:
    from pawl.models.failures import Strategy
    from pawl.models.scripted import ScriptedModel

OpenModel = Callable[[ModelName], Model]

_FALLS_BACK = (errors.Overloaded, errors.RateLimited, errors.Unreachable, errors.ModelTimedOut, errors.UnknownModel)


class Router:
    """Fits `Model`. Safe to use from several threads, each with its own request."""

    def __init__(
        self,
        open_model: OpenModel,
        *,
        routes: Routes,
        ledger: Ledger,
        providers: Mapping[str, Provider],
        most_output: Callable[[str], int] | None = None,
    ) -> None:
        """`most_output` is what a model may be asked to write; a fallback may write less than the first model."""
        self._most_output = most_output
        self._open_model = open_model
        self.routes = routes
        self.ledger = ledger
        self._providers = providers
        self._models: dict[ModelName, Model] = {}
        self._lock = threading.Lock()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        return self.conversation().stream(request, cancel=cancel)

    def conversation(self) -> RoutedModel:
        return RoutedModel(self)

    def fitted(self, request: Request, name: str) -> Request:
        """The request as this model is asked it."""
        sampling = request.sampling
        if self._most_output is not None:
            sampling = replace(sampling, max_output=min(sampling.max_output, self._most_output(name)))
        return replace(request, model=name, sampling=sampling)

    def opened(self, name: str) -> Model:
        """The model of that name, opened once."""
        parsed = ModelName.parse(name, self._providers)
        with self._lock:
            if parsed not in self._models:
                self._models[parsed] = self._open_model(parsed)
            return self._models[parsed]


class RoutedModel:
    """Fits `Model`, for one conversation at a time."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._given_up: set[str] = set()
        """Models that another took over from; they are not waited for again at each request."""
        self.charged: tuple[Charge, ...] = ()
        """Those of the latest request, one for each model that was asked, however it ended."""
        self.request: Request | None = None
        self.answer: ModelResponse | None = None
        """The answer to it, once there is one."""

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self.charged, self.request, self.answer = (), request, None
        listed = (request.model, *self._router.routes.fallbacks.get(request.model, ()))
        names = tuple(name for name in listed[:-1] if name not in self._given_up) + listed[-1:]
        for name, following in zip(names, (*names[1:], None), strict=True):
            try:
                yield from self._asked(self._router.fitted(request, name), cancel)
                return
            except _FALLS_BACK as error:
                if following is None:
                    raise
                self._given_up.add(name)
                yield FellBack(model=name, to=following, why=error.message)

    def _asked(self, request: Request, cancel: CancelToken | None) -> Generator[ModelEvent, None, None]:
        model = self._router.opened(request.model)
        with self._router.ledger.reserve(request) as account:
            request = account.request
            ended = "closed"
            events = model.stream(request, cancel=cancel)
            try:
                for event in events:
                    if isinstance(event, Answered):
                        self.answer = account.answered(event.answer)
                        ended = self.answer.stop
                        yield Answered(self.answer)
                        return
                    account.hears(event)
                    yield event
                raise errors.AnswerInterrupted(f"{request.model!r} ended without an answer", advice="try again")
            except errors.PawlError as error:
                ended = error.code
                account.fails(error)
                raise
            finally:
                events.close()
                self.charged = (*self.charged, account.closed(ended))


class Models:
    """The models of one process: opened when first asked, closed together."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        record: Path | None = None,
        base: Path | None = None,
        used: Mapping[str, Sequence[int]] | None = None,
        warn: Callable[[str], object] = lambda text: None,
    ) -> None:
        """`used` are the turns of scripts that a run has taken before it was resumed, by the name of the model."""
        self.config = config
        self._used = used or {}
        self._warn = warn
        self._scripts: dict[str, ScriptedModel] = {}
        self._record = record
        self._base = base or Path.cwd()
        """Where a model's file is looked for when its path is relative."""
        self._closing = ExitStack()
        ledger = Ledger(config.budget, config.prices, reasoning_tokens=self._reasoning_tokens)
        self.router = Router(
            self._open,
            routes=config.routes,
            ledger=ledger,
            providers=config.providers,
            most_output=self.most_output,
        )

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    @property
    def used(self) -> dict[str, tuple[int, ...]]:
        """The turns that each script has taken."""
        return {name: script.consumed for name, script in self._scripts.items()}

    def can(self, name: str) -> Capabilities:
        return capabilities(name, self.config.rules)

    def most_output(self, name: str) -> int:
        """Tokens that a model may be asked to write; most of its context is for what it reads."""
        can = self.can(name)
        return min(can.max_output, max(1, can.context // 4))

    def reads(self, name: str) -> int:
        """Tokens that a model can be sent beside the longest answer that it is asked for."""
        return self.can(name).context - min(self.config.sampling.max_output, self.most_output(name))

    def _reasoning_tokens(self, model: str) -> int:
        """The most that a model may write on top of its answer when it reasons."""
        name = ModelName.parse(model, self.config.providers)
        own = {} if name.is_file else self.config.providers[name.provider].quirks
        return quirks_of({**own, **self.can(model).quirks}).reasoning_budget

    def _open(self, name: ModelName) -> Model:
        model = self._plain(name)
        if self._record is not None:
            from pawl.models.recorder import AnswerRecorder

            model = AnswerRecorder(model, self._record)
        return model

    def _plain(self, name: ModelName) -> Model:
        if name.is_script:
            from pawl.models.scripted import ScriptedModel

            path = self._base / Path(name.name).expanduser()
            return self._scripts.setdefault(str(name), ScriptedModel(path, used=self._used.get(str(name), ())))
        if name.is_local_file:
            return self._local(name)
        return self._served(name)

    def _served(self, name: ModelName) -> Model:
        from pawl.models.endpoint import Timeouts
        from pawl.models.exchange import Transport, WireModel
        from pawl.models.failures import Retries
        from pawl.models.text_protocol import EditTools, fitted

        config = self.config
        endpoint = endpoint_for(name, config.providers, config.environment, config.rules)
        if endpoint.is_in_the_clear:
            self._warn(f"the key for {name.provider!r} goes to {endpoint.host} over http, where others can read it")
        transport = self._closing.enter_context(Transport())
        edits = EditTools(patch="strict_patch", file="file_write")
        limits = config.retry_limits
        retries = Retries(
            tries=config.retries + 1,
            seconds=limits.seconds,
            base=limits.base,
            longest_asked=limits.longest_asked,
            strategy=own_strategy(config.retry_strategy) if config.retry_strategy else None,
        )
        # No request takes longer than all of the run may.
        timeouts = Timeouts(whole=min(Timeouts().whole, config.budget.seconds))
        return fitted(WireModel(endpoint, transport, timeouts=timeouts, retries=retries), self.can(str(name)), edits)

    def _local(self, name: ModelName) -> Model:
        from pawl.models.configuration import local_settings
        from pawl.models.local.form import ConstrainedTools
        from pawl.models.local.gguf import LocalModel

        path = self._base / Path(name.name).expanduser()
        return ConstrainedTools(self._closing.enter_context(LocalModel(path, local_settings(self.config.local))))


def own_strategy(name: str) -> Strategy:
    """How long to wait before another attempt at asking a model."""
    found = loaded("pawl.retries", name)

    def strategy(failed: Any) -> float | None:
        with found.guarded():
            match found.value(failed):
                case None:
                    return None
                case int() | float() as seconds if 0 <= seconds < float("inf"):
                    return float(seconds)
                case other:
                    raise wrong_extension(found, f"it must give back seconds or None, not {other!r:.100}")

    return strategy
