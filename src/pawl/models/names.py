"""What a model is called: `provider/name`, `local:FILE` or `scripted:FILE`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pawl.core.errors import UnknownModel
from pawl.models.providers import Provider, builtin
from pawl.models.tables import nearest

LOCAL = "local"
SCRIPTED = "scripted"

_SHAPES = "write provider/name (openai/gpt-5), local:FILE.gguf or scripted:FILE.toml"
_FILE = re.compile(rf"(?P<kind>{LOCAL}|{SCRIPTED}):(?P<file>.+)", re.DOTALL)
_SERVED = re.compile(r"(?P<provider>[^/:\s]+)/(?P<name>[^\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    """The parts of a model's name. For a file, the provider is `local` or `scripted` and the name is the path."""

    provider: str
    name: str

    @property
    def is_local_file(self) -> bool:
        return self.provider == LOCAL

    @property
    def is_script(self) -> bool:
        return self.provider == SCRIPTED

    @property
    def is_file(self) -> bool:
        return self.is_local_file or self.is_script

    def __str__(self) -> str:
        return f"{self.provider}{':' if self.is_file else '/'}{self.name}"

    @classmethod
    def parse(cls, text: str, providers: Mapping[str, Provider] | None = None) -> ModelName:
        """The name of a model that these providers serve; `UnknownModel` says what may have been meant."""
        providers = builtin() if providers is None else providers
        if not text.strip():
            raise UnknownModel("no model is named", advice=_SHAPES)
        if file := _FILE.fullmatch(text):
            return cls(provider=file["kind"], name=file["file"])
        served = _SERVED.fullmatch(text)
        if served is None or served["name"].startswith("/"):
            raise UnknownModel(f"{text!r} is not a model's name", advice=_likely(text, providers))
        if served["provider"] not in providers:
            raise UnknownModel(f"no provider {served['provider']!r}", advice=_known(served["provider"], providers))
        return cls(provider=served["provider"], name=served["name"])


def _likely(text: str, providers: Mapping[str, Provider]) -> str:
    """A bare name is often that of a well-known family."""
    for provider in providers.values():
        if any(fnmatch.fnmatchcase(text.lower(), family) for family in provider.families):
            return f"did you mean {provider.name + '/' + text!r}?"
    kind = text.partition(":")[0]
    if kind in (LOCAL, SCRIPTED):
        return f"name the file: {kind}:FILE"
    return _SHAPES


def _known(word: str, providers: Mapping[str, Provider]) -> str:
    called = {other: provider.name for provider in providers.values() for other in (provider.name, *provider.called)}
    meant = nearest(word, called)
    hint = f"did you mean {called[meant]!r}? " if meant else ""
    return (
        f"{hint}the providers are {', '.join(sorted(providers))}; "
        f"another one is added with base_url and wire in [providers.{word}]"
    )
