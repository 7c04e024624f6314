"""From a model's name to where it is asked: the provider's address, its key, and how the model departs from it."""

from __future__ import annotations

from collections.abc import Mapping

from pawl.models.capabilities import Rule, capabilities
from pawl.models.endpoint import Endpoint, quirks_of
from pawl.models.names import ModelName
from pawl.models.providers import Provider


def endpoint_for(
    name: ModelName, providers: Mapping[str, Provider], environment: Mapping[str, str], overrides: tuple[Rule, ...] = ()
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
