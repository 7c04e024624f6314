"""Models that can be used from here: keys that are set, servers on loopback, GGUF files; and a try of one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pawl.core.dialogue import Answered, Request, user
from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.models.providers import ModelName, Provider
from pawl.models.router import ModelConfig, Models, Reached, looked_for

GGUF_FOLDERS = (
    "models",
    ".lmstudio/models",
    ".cache/lm-studio/models",
    ".cache/huggingface/hub",
    ".local/share/models",
)
"""Below the home folder, where programs and people keep model files."""
MOST_FILES, MOST_FOLDERS = 20, 2_000
QUESTION = "Answer with the single word: ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOffer:
    """A way to a model that was found."""

    provider: str
    where: str
    """How it was found, for a person."""
    models: tuple[str, ...] = ()
    """As `--model` takes them; empty where the provider did not list any."""
    key_name: str = ""
    """The key that stands in the workspace's own `.env`, which only counts once it is saved for the user."""
    trouble: str = ""


def offers(config: ModelConfig, home: Path, workspace_keys: Mapping[str, str]) -> tuple[ModelOffer, ...]:
    """Everything that is found, servers of this machine first; each server has a few seconds, all at once."""
    local = [one for one in config.providers.values() if one.local]
    keyed = [one for one in config.providers.values() if one.key_env and one.has_key(config.environment)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(
            pool.map(lambda one: looked_for(config, str(ModelName(provider=one.name, name="any"))), [*local, *keyed])
        )
    found = [_served(one, answer, config) for one, answer in zip([*local, *keyed], answers, strict=True)]
    files = tuple(f"local:{path}" for path in gguf_files(home))
    made = [one for one in found if one is not None]
    if files:
        made.append(ModelOffer(provider="local", where="GGUF files in your home folder", models=files))
    known = {name for one in keyed for name in one.key_env}
    for one in config.providers.values():
        for name in one.key_env:
            if name in workspace_keys and name not in known:
                made.append(ModelOffer(provider=one.name, where=f"{name} in this folder's .env", key_name=name))
                break
    return tuple(made)


def _served(provider: Provider, answer: Reached, config: ModelConfig) -> ModelOffer | None:
    address = provider.address(config.environment)
    if provider.local:
        if not answer.works or not answer.names:
            return None
        return ModelOffer(provider=provider.name, where=f"answers at {address}", models=_named(provider, answer))
    where = f"{provider.key_name(config.environment)} is set"
    trouble = "" if answer.works else answer.detail
    return ModelOffer(provider=provider.name, where=where, models=_named(provider, answer), trouble=trouble)


def _named(provider: Provider, answer: Reached) -> tuple[str, ...]:
    return tuple(f"{provider.name}/{name}" for name in answer.names)


def gguf_files(home: Path) -> tuple[Path, ...]:
    """Model files below the usual folders; links and deep trees are not followed far."""
    return tuple(sorted(_walked(home)))[:MOST_FILES]


def _walked(home: Path) -> Iterator[Path]:
    seen = 0
    for folder in GGUF_FOLDERS:
        for place, _, names in os.walk(home / folder):
            seen += 1
            if seen > MOST_FOLDERS:
                return
            yield from (Path(place) / name for name in names if name.endswith(".gguf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    works: bool
    detail: str
    advice: str = ""


def tried(config: ModelConfig, model: str, base: Path | None = None) -> Trial:
    """Ask the model one short question, for real."""
    started = time.monotonic()
    try:
        chosen = config.with_model(model)
        with Models(chosen, base=base) as models:
            request = Request(model=model, system=(), messages=(user(QUESTION),), sampling=chosen.sampling)
            for event in models.router.stream(request):
                if isinstance(event, Answered):
                    return Trial(works=True, detail=f"answered in {time.monotonic() - started:.1f} s")
    except PawlError as error:
        return Trial(works=False, detail=error.message.removeprefix("--model: "), advice=error.advice)
    return Trial(works=False, detail="it gave no answer")


def likely(models: Sequence[str]) -> tuple[str, ...]:
    """Those that can hold a conversation, the first ones first: no embeddings, speech or pictures."""
    other = ("embed", "whisper", "tts", "audio", "image", "dall-e", "moderation", "rerank", "imagen", "veo")
    return tuple(one for one in models if not any(word in one.lower() for word in other))
