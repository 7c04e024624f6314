"""Settings: one frozen value, read once from the user's file and the environment. Nothing else reads either."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Above, AtLeast, Reader, Unreadable, read_toml
from pawl.settings import files as bounded
from pawl.settings.guardrails import presets

if TYPE_CHECKING:
    from pawl.core.execution import Limits


Seconds = Annotated[float, Above(0)]
Count = Annotated[int, Above(0)]
Switch = Literal["on", "off"]
AutoSwitch = Literal["auto", "on", "off"]

framework_folders: list[Path] = []
"""Where the user has test frameworks of their own (B10); read by the first who asks for frameworks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of `config.toml`; the defaults are the product's."""

    preset: str = "standard"
    """Which guardrails apply."""
    minimum_confinement: Literal["namespaces", "landlock"] = "landlock"
    """The weakest sandbox that is accepted: `namespaces` or `landlock`."""
    run_seconds: Seconds = 600.0
    """For `pawl run`."""
    fix_seconds: Seconds = 60.0
    """For the search of the reflex."""
    tool_seconds: Seconds = 30.0
    file_seconds: Seconds = 5.0
    memory_mb: Count = 4096
    processes: Count = 512
    output_kb: Count = 1024
    file_mb: Count = 1024
    disk_mb: Count = 4096
    reasoning: Switch = "off"
    """Whether models are asked to reason: `on` or `off`."""
    detail: Literal["terse", "exhaustive"] = "terse"
    """How much models are asked to say: `terse` or `exhaustive`."""
    review: AutoSwitch = "auto"
    """Whether a second role looks at finished work: `auto` for larger changes, `on` or `off`."""
    evaluator: Literal["rules", "model"] = "rules"
    """Who scores what came of a run: `rules` or a `model`."""
    commit: Switch = "off"
    """Whether each change that a run promotes is committed to git by itself."""
    attribution: Literal["none", "co-authored-by", "assisted-by"] = "none"
    """The trailer of a commit for the model that wrote it: `none`, `co-authored-by` or `assisted-by`."""
    context_tokens: Annotated[int, AtLeast(0)] = 800
    """How much of the code that it may be about a model is given with a request; 0 for nothing."""
    memory_bank: AutoSwitch = "auto"
    """Whether runs that succeed add to the memory bank: `auto` where there is one, `on` or `off`."""
    escalate: AutoSwitch = "auto"
    """Whether models go on where the checks keep refusing: `auto` only with the user's leave, `on` or `off`."""
    model_retries: Annotated[int, AtLeast(0)] = 3
    """How often a request that failed for a passing reason is sent again."""
    retention_days: Count = 30
    backups: Count = 5
    rollback: Switch = "on"
    """Whether a run falls back to its last checkpoint by itself where a task fails."""
    rollback_depth: Count = 5

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
    session: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Where things are on this machine, and the user's settings."""

    home: Path
    state: Path
    file: Path
    search_path: str
    global_ignore: Path
    color: bool
    settings: Settings = field(default_factory=Settings)
    tables: SettingsTables = field(default_factory=SettingsTables)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of this process; they hold keys, so that they never show."""
    mistaken: bool = False
    """Defaults stand in for what is wrong in the settings file."""


def load(environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of this process; `ConfigError` where the settings file is wrong."""
    config, mistakes = partly_loaded(environment)
    if mistakes is not None:
        raise mistakes
    return config


def partly_loaded(environment: Mapping[str, str] | None = None) -> tuple[Config, ConfigError | None]:
    """The configuration with defaults in the place of what is wrong in the settings file, and what is wrong there."""
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
    settings, tables, mistakes = _settings(file, required=bool(env.get("PAWL_CONFIG")))
    config = Config(
        home=home,
        state=state,
        file=file,
        search_path=env.get("PATH", ""),
        global_ignore=config_home / "git" / "ignore",
        color=not env.get("NO_COLOR") and env.get("TERM") != "dumb",
        settings=settings,
        tables=tables,
        environment=dict(env),
        mistaken=mistakes is not None,
    )
    return config, mistakes


def _folder(env: Mapping[str, str], name: str, default: Path) -> Path:
    """The XDG rule: a relative value counts as none."""
    value = env.get(name, "")
    return Path(value) if os.path.isabs(value) else default


_Read = tuple[Settings, SettingsTables, ConfigError | None]


def _settings(file: Path, *, required: bool) -> _Read:
    try:
        return _checked_settings(read_toml(bounded.read_text(file)), file)
    except FileNotFoundError:
        told = f"PAWL_CONFIG names {str(file)!r}, which is not there", "create it or unset PAWL_CONFIG"
        if not required:
            return Settings(), SettingsTables(), None
    except Unreadable as error:
        told = f"{str(file)!r} is not TOML: {error}", "mend that line"
    except (OSError, UnicodeDecodeError) as error:
        told = f"{str(file)!r} cannot be read: {error}", "mend or remove the file"
    return Settings(), SettingsTables(), ConfigError(told[0], advice=told[1])


def _checked_settings(table: Mapping[str, object], file: Path) -> _Read:
    """Every mistake is reported at once."""
    reader = Reader()
    settings, tables = ([one.name for one in fields(kind)] for kind in (Settings, SettingsTables))
    read = reader.table(Settings, {name: table[name] for name in settings if name in table}, "") or Settings()
    if read.preset not in presets():
        reader.mistakes.append(f"no guardrail preset {read.preset!r}; there are {', '.join(presets())}")
        read = replace(read, preset=Settings().preset)
    for name in table:
        if name not in settings and name not in tables:
            reader.wrong(repr(name), "is not a setting")
    given = {name: reader.value(Mapping[str, object], table[name], name) or {} for name in tables if name in table}
    mistakes = ConfigError(
        f"{str(file)!r}: " + "; ".join(reader.mistakes),
        advice=f"the settings are {', '.join(sorted(settings))}; the tables are {', '.join(tables)}",
    )
    return read, SettingsTables(**given), mistakes if reader.mistakes else None
