"""Settings: one frozen value, read once from the user's file and the environment. Nothing else reads either."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import ConfigError
from pawl.core.formats import Unreadable, read_toml
from pawl.settings import files as bounded
from pawl.settings.guardrails import presets

if TYPE_CHECKING:
    from pawl.core.execution import Limits


CHOICES = {
    "minimum_confinement": ("namespaces", "landlock"),
    "reasoning": ("on", "off"),
    "detail": ("terse", "exhaustive"),
    "review": ("auto", "on", "off"),
    "evaluator": ("rules", "model"),
    "commit": ("on", "off"),
    "attribution": ("none", "co-authored-by", "assisted-by"),
    "memory_bank": ("auto", "on", "off"),
    "escalate": ("auto", "on", "off"),
}


MAY_BE_NONE = frozenset({"model_retries", "context_tokens"})
"""Settings that 0 switches off."""


framework_folders: list[Path] = []
"""Where the user has test frameworks of their own (B10); read by the first who asks for frameworks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user may set in `config.toml`; the defaults are the product's."""

    preset: str = "standard"
    """Which guardrails apply."""
    minimum_confinement: str = "landlock"
    """The weakest sandbox that is accepted: `namespaces` or `landlock`."""
    run_seconds: float = 600.0
    """For `pawl run`."""
    fix_seconds: float = 60.0
    """What the reflex may take for its search."""
    tool_seconds: float = 30.0
    file_seconds: float = 5.0
    memory_mb: int = 4096
    processes: int = 512
    output_kb: int = 1024
    file_mb: int = 1024
    disk_mb: int = 4096
    reasoning: str = "off"
    """Whether models are asked to reason: `on` or `off`."""
    detail: str = "terse"
    """How much models are asked to say: `terse` or `exhaustive`."""
    review: str = "auto"
    """Whether a second role looks at finished work: `auto` for larger changes, `on` or `off`."""
    evaluator: str = "rules"
    """Who scores what came of a run: `rules` or a `model`."""
    commit: str = "off"
    """Whether each change that a run promotes is committed to git by itself."""
    attribution: str = "none"
    """What a commit says of the model that wrote it: `none`, `co-authored-by` or `assisted-by`."""
    context_tokens: int = 800
    """How much of the code that it may be about a model is given with a request; 0 for nothing."""
    memory_bank: str = "auto"
    """Whether runs that succeed add to the memory bank: `auto` where there is one, `on` or `off`."""
    escalate: str = "auto"
    """Whether models go on where the checks keep refusing: `auto` only with the user's leave, `on` or `off`."""
    model_retries: int = 3
    """How often a request that failed for a passing reason is sent again."""
    retention_days: int = 30
    backups: int = 5
    rollback_depth: int = 5

    def limits(self, seconds: float) -> Limits:
        from pawl.core.execution import Limits

        return Limits(
            seconds=seconds,
            memory_bytes=self.memory_mb << 20,
            processes=self.processes,
            output_bytes=self.output_kb << 10,
            file_bytes=self.file_mb << 20,
            disk_bytes=self.disk_mb << 20,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsTables:
    """The tables of `config.toml`, as they are written; who reads one checks it."""

    models: Mapping[str, object] = field(default_factory=dict)
    providers: Mapping[str, object] = field(default_factory=dict)
    prices: Mapping[str, object] = field(default_factory=dict)
    budget: Mapping[str, object] = field(default_factory=dict)
    sampling: Mapping[str, object] = field(default_factory=dict)
    local: Mapping[str, object] = field(default_factory=dict)
    trust: Mapping[str, object] = field(default_factory=dict)
    permissions: Mapping[str, object] = field(default_factory=dict)
    hooks: Mapping[str, object] = field(default_factory=dict)
    verify: Mapping[str, object] = field(default_factory=dict)
    extensions: Mapping[str, object] = field(default_factory=dict)
    retries: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Where things are on this machine, and the user's settings."""

    home: Path
    state: Path
    file: Path
    search_path: str
    virtual_environment: str | None
    global_ignore: Path
    color: bool
    settings: Settings = field(default_factory=Settings)
    tables: SettingsTables = field(default_factory=SettingsTables)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of this process; they hold keys, so that they never show."""


def load(environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of this process."""
    env = os.environ if environment is None else environment
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    if not home.is_absolute():
        raise ConfigError(f"HOME is {str(home)!r}, which is not absolute", advice="set HOME to your home folder")
    config_home = _folder(env, "XDG_CONFIG_HOME", home / ".config")
    file = Path(env["PAWL_CONFIG"]) if env.get("PAWL_CONFIG") else config_home / "pawl" / "config.toml"
    state = (
        Path(env["PAWL_STATE"])
        if env.get("PAWL_STATE")
        else _folder(env, "XDG_STATE_HOME", home / ".local/state") / "pawl"
    )
    if not state.is_absolute():
        raise ConfigError(f"PAWL_STATE is {str(state)!r}, which is not absolute", advice="give the whole path")
    settings, tables = _settings(file, required=bool(env.get("PAWL_CONFIG")))
    return Config(
        home=home,
        state=state,
        file=file,
        search_path=env.get("PATH", ""),
        virtual_environment=env.get("VIRTUAL_ENV"),
        global_ignore=config_home / "git" / "ignore",
        color=not env.get("NO_COLOR") and env.get("TERM") != "dumb",
        settings=settings,
        tables=tables,
        environment=dict(env),
    )


def _folder(env: Mapping[str, str], name: str, default: Path) -> Path:
    """The XDG rule: a relative value counts as none."""
    value = env.get(name, "")
    return Path(value) if os.path.isabs(value) else default


def _settings(file: Path, *, required: bool) -> tuple[Settings, SettingsTables]:
    try:
        text = bounded.read_text(file)
    except FileNotFoundError:
        if required:
            raise ConfigError(
                f"PAWL_CONFIG names {str(file)!r}, which is not there", advice="create it or unset PAWL_CONFIG"
            ) from None
        return Settings(), SettingsTables()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error}", advice="mend or remove the file") from error
    try:
        table = read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"{str(file)!r} is not TOML: {error}", advice="mend that line") from error
    return _checked_settings(table, file)


def _checked_settings(table: Mapping[str, object], file: Path) -> tuple[Settings, SettingsTables]:
    """Every mistake is reported at once."""
    defaults = Settings()
    tables = {one.name: table[one.name] for one in fields(SettingsTables) if one.name in table}
    known = {one.name: type(getattr(defaults, one.name)) for one in fields(Settings)}
    values = {
        name: float(value) if type(value) is int and known.get(name) is float else value
        for name, value in table.items()
        if name not in tables
    }
    mistakes = [f"{name} must be a table, not {value!r}" for name, value in tables.items() if type(value) is not dict]
    mistakes += [
        mistake for name in values if (mistake := _settings_mistake(name, values[name], known.get(name))) is not None
    ]
    if mistakes:
        raise ConfigError(
            f"{str(file)!r}: " + "; ".join(mistakes),
            advice=f"the settings are {', '.join(sorted(known))}; "
            f"the tables are {', '.join(one.name for one in fields(SettingsTables))}",
        )
    return Settings(**values), SettingsTables(**tables)  # type: ignore[arg-type]


def _settings_mistake(name: str, value: object, kind: type | None) -> str | None:
    if kind is None:
        return f"{name!r} is not a setting"
    if type(value) is not kind:
        words = {int: "a whole number", float: "a number", str: "a text in quotes"}
        return f"{name} must be {words[kind]}, not {value!r}"
    if isinstance(value, int | float) and not (0 < value < math.inf or (value == 0 and name in MAY_BE_NONE)):
        return f"{name} must be above 0, not {value!r}"
    choices = CHOICES.get(name)
    if choices is not None and value not in choices:
        return f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}"
    if name == "preset" and value not in presets():
        return f"no guardrail preset {value!r}; there are {', '.join(presets())}"
    return None
