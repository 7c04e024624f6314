"""Opens the model of a name: a provider's over the wire, a script, a file on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pawl.models import Model
from pawl.models.capabilities import Capabilities, CapabilityRule, capabilities
from pawl.models.configuration import ModelConfig
from pawl.models.endpoint import Endpoint, quirks_of
from pawl.models.ledger import Ledger
from pawl.models.providers import ModelName, Provider
from pawl.models.router import Router
from pawl.settings.extensions import loaded, wrong_extension

if TYPE_CHECKING:
    from pawl.models.failures import Strategy
    from pawl.models.scripted import ScriptedModel


def endpoint_for(
    name: ModelName,
    providers: Mapping[str, Provider],
    environment: Mapping[str, str],
    overrides: tuple[CapabilityRule, ...] = (),
) -> Endpoint:
    """Where a provider's model is asked; `NotAuthorized` when the key is missing."""
    provider = providers[name.provider]
    return Endpoint(
        wire=provider.wire,
        base_url=provider.address(environment),
        key=provider.key(environment),
        key_name=provider.key_name(environment),
        name=name.name,
        provider=name.provider,
        quirks=quirks_of({**provider.quirks, **capabilities(str(name), overrides).quirks}),
    )


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
        """What a model may write on top of its answer when it reasons; that of a file is all one answer."""
        name = ModelName.parse(model, self.config.providers)
        own = {} if name.is_file else self.config.providers[name.provider].quirks
        return quirks_of({**own, **self.can(model).quirks}).reasoning_budget

    def _open(self, name: ModelName) -> Model:
        model = self._plain(name)
        if self._record is not None:
            from pawl.models.recorder import Recorder

            model = Recorder(model, self._record)
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
        from pawl.models.exchange import WireModel
        from pawl.models.failures import Retries
        from pawl.models.text_protocol import EditTools, fitted
        from pawl.models.transport import Transport

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
        from pawl.models.local.header import local_settings
        from pawl.models.local.model import LocalModels

        settings = local_settings(self.config.local)
        path = self._base / Path(name.name).expanduser()
        return self._closing.enter_context(LocalModels()).open(path, settings)


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
