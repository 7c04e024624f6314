"""Settings: one frozen value, read once from the user's file and the environment. Nothing else reads either.

Variables also come from `.env` files: the user's own, and a workspace's only where it is trusted. Nothing is put into
the environment of the process; the real environment wins. A workspace may bring keys, and nothing that says where they
are sent. Nothing is executed or filled in.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pawl.core.errors import ConfigError, why
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Above, AtLeast, Reader, Unreadable, read_toml
from pawl.settings import files as bounded
from pawl.settings.files import passes
from pawl.settings.guardrails import presets

if TYPE_CHECKING:
    from pawl.core.execution import Limits


Seconds = Annotated[float, Above(0)]
Count = Annotated[int, Above(0)]
Switch = Literal["on", "off"]
AutoSwitch = Literal["auto", "on", "off"]

workspaces: set[str] = set()
"""Those that this process has opened: agents write there."""
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
    context_tokens: Annotated[int, AtLeast(0)] = 2_000
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
    web: Mapping[str, object] = field(default_factory=dict)
    mcp: Mapping[str, object] = field(default_factory=dict)
    queue: Mapping[str, object] = field(default_factory=dict)


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

    @property
    def clones(self) -> Path:
        """Where repositories elsewhere are fetched to."""
        return self.state.with_name(f"{self.state.name}-clones")


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
        told = f"PAWL_CONFIG names {str(file)!r}, which does not exist", "create it or unset PAWL_CONFIG"
        if not required:
            return Settings(), SettingsTables(), None
    except Unreadable as error:
        told = f"{str(file)!r} is not TOML: {error}", "correct that line"
    except (OSError, UnicodeDecodeError) as error:
        told = f"{str(file)!r} cannot be read: {why(error)}", "correct or remove the file"
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


LARGEST_ENV = 64 << 10
IN_KEYRING = "keyring:"
"""The value of a variable whose key is in the keyring of the system."""

_ENV_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
_BLANK = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BARE = re.compile(r"[^\n]*")
_COMMENT = re.compile(r"(?:\A|(?<=[ \t]))#.*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "$": "$"}
_QUOTED = {
    "'": re.compile(r"'(?P<text>[^']*)'"),
    '"': re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"', re.DOTALL),
}
_FILLED_IN = re.compile(r"(?<!\\)(?:\$[({]|`)")
_WORKSPACE_NAME = re.compile(r"(?!PAWL_|OTEL_)[A-Z0-9_]*(?:_API_KEY|_ACCESS_TOKEN|_AUTH_TOKEN|_API_TOKEN)")


def environment_of(environment: Mapping[str, str], *, user: Path, workspace: str = "") -> dict[str, str]:
    """The environment with what the files add to it.

    `user` is the user's own file. `workspace` is the text of one that the user trusts: only keys are taken from it.
    The environment wins over the user's file, and that over the workspace's.
    """
    keys = parse_env(workspace, ".env", wanted=may_come_from_workspace)
    return {**keys, **read_env(user), **environment}


def may_come_from_workspace(name: str) -> bool:
    """Whether a repository may set it: a key is sent where the user's own settings say."""
    return _WORKSPACE_NAME.fullmatch(name) is not None


def read_env(path: Path, *, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
    """The variables of a file; none when there is no such file. An error names the line, never its value."""
    return parse_env(env_text(path), str(path), wanted=wanted)


def parse_env(text: str, source: str, *, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
    """The variables of a text, the last of each name; `source` names it in errors.

    A value is bare, in single quotes as it is, or in double quotes with the escapes of n, r, t, $, quote and
    backslash. One in quotes may go over several lines. A `#` starts a comment at the start of a line or behind room.
    """
    values: dict[str, str] = {}
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    at = 0
    while at < len(text):
        blank = _BLANK.match(text, at)
        if blank:
            at = blank.end()
            continue
        line = text.count("\n", 0, at) + 1
        head = _ENV_LINE.match(text, at)
        if head is None:
            raise _env_mistake(source, line, "is not NAME=value")
        value, at = _env_value(text, head.end(), source, line)
        if wanted(head["name"]):
            values[head["name"]] = _checked_value(value, head["name"], text[head.end() : head.end() + 1], source, line)
    return values


def _env_value(text: str, at: int, source: str, line: int) -> tuple[str, int]:
    """The value that starts there as it is written, and where the next line starts."""
    pattern = _QUOTED.get(text[at : at + 1])
    if pattern is None:
        bare = _BARE.match(text, at)
        end = bare.end() if bare else at
        return _COMMENT.sub("", text[at:end]).rstrip(), end + 1
    quoted = pattern.match(text, at)
    if quoted is None:
        raise _env_mistake(source, line, "opens a quote that is not closed")
    rest = _BLANK.match(text, quoted.end())
    if rest is None:
        raise _env_mistake(source, line, "continues after the closing quote")
    return quoted["text"], rest.end()


def _checked_value(value: str, name: str, quote: str, source: str, line: int) -> str:
    if quote != "'" and _FILLED_IN.search(value):
        raise _env_mistake(
            source, line, f"refers to {name}, which Pawl does not expand", "write the value, or use single quotes"
        )
    if quote == '"':
        value = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), value)
    if "\0" in value:
        raise _env_mistake(source, line, f"gives {name} a value with a NUL in it")
    return value


def env_text(path: Path) -> str:
    """A regular file of a bounded size; a pipe would not end, and a device would not either."""
    try:
        return bounded.read_text(path, LARGEST_ENV)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    except UnicodeDecodeError:
        # The error itself would show bytes of the file.
        raise _unreadable(path, "it is not UTF-8") from None


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{str(path)!r} cannot be read: {why}", advice="correct or remove the file")


def _env_mistake(source: str, line: int, what: str, advice: str = "correct that line") -> ConfigError:
    return ConfigError(f"line {line} of {source!r} {what}", advice=advice)


def host_path(environment: Mapping[str, str], *folders: str) -> str:
    """The PATH for programs on this machine: no relative folder, and none of these, which an agent may fill."""
    entries = environment.get("PATH", os.defpath).split(":")
    return ":".join(one for one in entries if one.startswith("/") and not any(passes(one, each) for each in folders))


def host_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """For a program on this machine: what it starts by name or loads is nothing of a workspace either."""
    kept = {name: value for name, value in environment.items() if not any(each in value for each in workspaces)}
    return {**kept, "HOME": environment.get("HOME", "/"), "PATH": host_path(environment, *workspaces)}


def host_program(name: str, environment: Mapping[str, str]) -> str:
    """The program of that name on this machine, outside of every workspace; empty where there is none."""
    found = shutil.which(name, path=host_path(environment, *workspaces))
    return found if found and not any(passes(found, each) for each in workspaces) else ""
