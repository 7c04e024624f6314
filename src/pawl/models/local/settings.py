"""How a local model is run, and the limits that follow from its file and from this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from pawl.core.errors import Overloaded
from pawl.models.local.header import Header
from pawl.models.local.machine import free_memory, spare_threads
from pawl.models.local.protocol import Start
from pawl.models.tables import Fields, raise_mistakes

Number = TypeVar("Number", int, float)

DEFAULT_CONTEXT = 8192
_OVERHEAD = 256 * 1024**2
"""Memory of the process besides the weights and the prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    context: int | None = None
    """Tokens that it reads and writes together; None for 8192, or less when the model was made for less."""
    threads: int | None = None
    """None for the cores that are not in use when it is loaded."""
    idle_seconds: float = 300.0
    """The memory is given back when nothing was asked for so long."""
    load_seconds: float = 600.0
    answer_seconds: float = 3600.0
    """For one answer; a slow machine reads a long prompt for minutes."""
    kept_prompts: int = 512 * 1024**2
    """Bytes in which the prompts of other conversations stay ready, so that roles can take turns."""

    def context_of(self, header: Header) -> int:
        return self.context or min(header.context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def local_settings(table: Mapping[str, object], *, where: str = "local") -> LocalSettings:
    """Settings from a configuration; `ConfigError` names every mistake."""
    mistakes: list[str] = []
    given = Fields(where, table, mistakes)
    plain = LocalSettings()
    read = LocalSettings(
        context=given.whole("context", least=1),
        threads=given.whole("threads", least=1),
        idle_seconds=_or(given.seconds("idle_seconds"), plain.idle_seconds),
        load_seconds=_or(given.seconds("load_seconds"), plain.load_seconds),
        answer_seconds=_or(given.seconds("answer_seconds"), plain.answer_seconds),
        kept_prompts=_or(given.whole("kept_prompts", least=0), plain.kept_prompts),
    )
    given.close()
    known = ", ".join(one.name for one in fields(LocalSettings))
    raise_mistakes("the settings of local models are wrong", mistakes, advice=f"there are {known}")
    return read


def start_of(header: Header, settings: LocalSettings, token: str) -> Start:
    """What a child is told; `Overloaded` when this machine has too little memory for it now."""
    context = settings.context_of(header)
    needed = header.size + header.cache_bytes(context) + settings.kept_prompts + _OVERHEAD
    free = free_memory()
    if free is not None and needed > free:
        raise Overloaded(
            f"{header.path.name!r} needs about {_gigabytes(needed)} of memory, and {_gigabytes(free)} are free",
            advice="close something, set a smaller context, or use a smaller file",
        )
    return Start(
        path=str(header.path),
        token=token,
        context=context,
        threads=settings.threads or spare_threads(),
        kept_prompts=settings.kept_prompts,
    )


def _or(value: Number | None, default: Number) -> Number:
    return default if value is None else value


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
