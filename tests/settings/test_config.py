"""Settings come from one file and the environment, and a wrong one is told with every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pawl.core.errors import ConfigError
from pawl.settings.config import Config, Settings, load


def loaded(tmp_path: Path, text: str | None = None, **environment: str) -> Config:
    """The configuration of a user whose home holds this config file."""
    if text is not None:
        (tmp_path / ".config/pawl").mkdir(parents=True)
        (tmp_path / ".config/pawl/config.toml").write_text(text)
    return load({"HOME": str(tmp_path), **environment})


def refused(tmp_path: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert caught.value.exit_code == 52
    return caught.value


def test_without_a_file_the_products_defaults_hold(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.settings == Settings()
    assert config.file == tmp_path / ".config/pawl/config.toml"
    assert config.state == tmp_path / ".local/state/pawl"
    assert config.global_ignore == tmp_path / ".config/git/ignore"


@pytest.mark.spec("A3", "A16")
def test_five_backups_and_a_rollback_depth_of_five_are_the_default(tmp_path: Path) -> None:
    settings = loaded(tmp_path).settings
    assert (settings.backups, settings.rollback_depth) == (5, 5)
    assert settings.retention_days == 30


@pytest.mark.spec("A11")
def test_limits_are_what_the_settings_say(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "memory_mb = 64\nprocesses = 7\noutput_kb = 2\nfile_mb = 3\ndisk_mb = 4\n").settings
    limits = settings.limits(9.5)
    assert (limits.seconds, limits.memory_bytes, limits.processes) == (9.5, 64 << 20, 7)
    assert (limits.output_bytes, limits.file_bytes, limits.disk_bytes) == (2 << 10, 3 << 20, 4 << 20)


def test_a_whole_number_is_good_enough_for_seconds(tmp_path: Path) -> None:
    assert loaded(tmp_path, "run_seconds = 5\n").settings.run_seconds == 5.0


def test_the_xdg_folders_are_used(tmp_path: Path) -> None:
    config = loaded(tmp_path, XDG_CONFIG_HOME="/etc/mine", XDG_STATE_HOME="/var/mine")
    assert (config.file, config.state) == (Path("/etc/mine/pawl/config.toml"), Path("/var/mine/pawl"))
    assert config.global_ignore == Path("/etc/mine/git/ignore")


@pytest.mark.parametrize("value", ["relative/path", "", "./x", "~/x"])
def test_an_xdg_folder_that_is_not_absolute_counts_as_none(tmp_path: Path, value: str) -> None:
    config = loaded(tmp_path, XDG_CONFIG_HOME=value, XDG_STATE_HOME=value)
    assert (config.file, config.state) == (
        tmp_path / ".config/pawl/config.toml",
        tmp_path / ".local/state/pawl",
    )


def test_pawls_own_variables_come_before_the_xdg_folders(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("backups = 9\n")
    config = loaded(tmp_path, PAWL_STATE="/var/pawl", PAWL_CONFIG=str(file), XDG_STATE_HOME="/elsewhere")
    assert (config.state, config.settings.backups) == (Path("/var/pawl"), 9)


@pytest.mark.parametrize("value", ["state", "./state", "~/state", "../state"])
def test_a_state_folder_that_is_not_absolute_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"PAWL_STATE is .* which is not absolute"):
        loaded(tmp_path, PAWL_STATE=value)


def test_a_home_that_is_not_absolute_is_refused() -> None:
    with pytest.raises(ConfigError, match="HOME is 'somewhere', which is not absolute"):
        load({"HOME": "somewhere"})


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"PAWL_CONFIG names '.*none\.toml', which does not exist"):
        loaded(tmp_path, PAWL_CONFIG=str(tmp_path / "none.toml"))


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        "presett = 'strict'\npreset = 'loose'\nmemory_mb = '1 GB'\nbackups = 0\nrun_seconds = nan\n"
        "processes = true\nminimum_confinement = 'none'\nfile_mb = 1.5\n[table]\n",
    )
    path = repr(str(tmp_path / ".config/pawl/config.toml"))
    assert set(error.message.removeprefix(f"{path}: ").split("; ")) == {
        "'presett' is not a setting",
        "no guardrail preset 'loose'",
        "there are standard, strict",
        "memory_mb must be a whole number, not '1 GB'",
        "backups must be above 0, not 0",
        "run_seconds must be above 0, not nan",
        "processes must be a whole number, not True",
        "minimum_confinement must be 'namespaces' or 'landlock', not 'none'",
        "file_mb must be a whole number, not 1.5",
        "'table' is not a setting",
    }
    assert error.advice.startswith("the settings are attribution, backups, commit, ")


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("run_seconds = inf", "run_seconds must be above 0, not inf"),
        ("tool_seconds = -1", "tool_seconds must be above 0, not -1.0"),
        ("tool_seconds = false", "tool_seconds must be a number, not False"),
        ("preset = 3", "preset must be a text in quotes, not 3"),
        ("retention_days = 1979-05-27", "retention_days must be a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_what_is_wanted(tmp_path: Path, line: str, mistake: str) -> None:
    assert mistake in refused(tmp_path, line).message


def test_a_file_that_is_not_toml_is_told_with_the_line(tmp_path: Path) -> None:
    assert "at line 2" in refused(tmp_path, "backups = 3\nbackups 4\n").message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".config/pawl").mkdir(parents=True)
    (tmp_path / ".config/pawl/config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        loaded(tmp_path)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".config/pawl/config.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("environment", "color"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_left_out_when_the_user_says_so(tmp_path: Path, environment: dict[str, str], color: bool) -> None:
    assert loaded(tmp_path, **environment).color is color
