"""Which folder is the workspace, and which never is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from users import become

from pawl.core.errors import UsageError
from pawl.settings.config import Config, load
from pawl.workspace.paths import find_workspace


@pytest.fixture
def config(tmp_path: Path) -> Config:
    for folder in ("home/project/.git", "home/project/src/deep", "home/plain", "home/.local/state/pawl/benches/b1"):
        (tmp_path / folder).mkdir(parents=True)
    return load({"HOME": str(tmp_path / "home")})


def test_the_nearest_repository_upwards_is_the_workspace(config: Config) -> None:
    project = config.home / "project"
    assert find_workspace(project / "src/deep", config, exact=False) == project
    (project / "src" / ".git").write_text("gitdir: elsewhere\n")
    assert find_workspace(project / "src/deep", config, exact=False) == project / "src"


def test_a_folder_that_pawl_knows_is_one_too(config: Config) -> None:
    (config.home / "plain/.pawl").mkdir()
    (config.home / "plain/sub").mkdir()
    assert find_workspace(config.home / "plain/sub", config, exact=False) == config.home / "plain"


def test_without_a_repository_it_is_the_folder_itself(config: Config) -> None:
    assert find_workspace(config.home / "plain", config, exact=False) == config.home / "plain"


def test_a_folder_that_is_named_is_taken_as_it_is(config: Config) -> None:
    assert find_workspace(config.home / "project/src", config, exact=True) == config.home / "project/src"


def test_a_home_that_is_a_repository_is_not_taken_for_the_workspace(config: Config) -> None:
    (config.home / ".git").mkdir()
    assert find_workspace(config.home / "plain", config, exact=False) == config.home / "plain"


@pytest.mark.parametrize("exact", [True, False])
def test_the_home_folder_and_all_that_holds_it_is_refused(config: Config, exact: bool) -> None:
    for folder in (config.home, config.home.parent, Path("/")):
        with pytest.raises(UsageError, match="holds your home folder, so it cannot be a workspace"):
            find_workspace(folder, config, exact=exact)


def test_the_home_folder_behind_a_link_is_refused(config: Config, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(config.home)
    with pytest.raises(UsageError, match="your home folder"):
        find_workspace(tmp_path / "way", config, exact=True)


def test_a_folder_that_holds_the_state_is_refused(config: Config, tmp_path: Path) -> None:
    outside = tmp_path / "srv"
    (outside / "state").mkdir(parents=True)
    moved = load({"HOME": str(config.home), "PAWL_STATE": str(outside / "state")})
    for folder in (outside, outside / "state"):
        with pytest.raises(UsageError, match="holds Pawl's own state"):
            find_workspace(folder, moved, exact=True)


def test_a_bench_is_no_workspace(config: Config) -> None:
    with pytest.raises(UsageError, match="lies in Pawl's own state"):
        find_workspace(config.state / "benches/b1", config, exact=True)


def test_a_folder_reached_through_a_link_is_known_by_its_real_path(config: Config, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(config.home / "project/src")
    assert find_workspace(tmp_path / "way/deep", config, exact=False) == config.home / "project"


def test_the_current_folder_reached_through_a_link_is_too(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "way").symlink_to(config.home / "project")
    monkeypatch.chdir(tmp_path / "way")
    assert find_workspace(Path("."), config, exact=True) == config.home / "project"


def test_what_is_not_there_or_no_folder_is_told(config: Config) -> None:
    (config.home / "file").write_text("")
    (config.home / "circle").symlink_to("circle")
    for name, message in (("nowhere", "there is no folder"), ("file", "is not a folder"), ("circle", "no folder")):
        with pytest.raises(UsageError, match=message) as caught:
            find_workspace(config.home / name, config, exact=True)
        assert caught.value.exit_code == 42


FIND = """
import sys
from pathlib import Path
from pawl.settings.config import load
from pawl.workspace.paths import find_workspace
from pawl.core.errors import UsageError
try:
    print(find_workspace(Path(sys.argv[1]), load(), exact=True))
except UsageError as error:
    print(error)
"""


def test_a_folder_that_cannot_be_written_is_refused() -> None:
    user = become("ordinary")
    with user.folder() as root:
        for name in ("home", "fixed", "free"):
            (root / name).mkdir()
        user.own(root)
        os.chmod(root / "fixed", 0o555)
        said = {}
        for name in ("fixed", "free"):
            process = user.start_python(FIND, str(root / name), home=root / "home", stdout=-1)
            said[name] = process.communicate(timeout=60)[0].decode().strip()
    assert said == {
        "fixed": f"the workspace {str(root / 'fixed')!r} is not writable",
        "free": str(root / "free"),
    }


CALL = "import sys\nfrom pawl.__main__ import main\nsys.argv[0] = 'pawl'\nsys.exit(main())"
SCRIPT = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
[[turn]]
match = { tool = "retries = 3" }
answer = "Three (app.py:1)."
"""


def test_what_only_reads_works_in_a_folder_that_cannot_be_written() -> None:
    user = become("ordinary")
    with user.folder() as root:
        for name in ("fixed", "home"):
            (root / name).mkdir()
        (root / "fixed" / "app.py").write_text("retries = 3\n")
        (root / "script.toml").write_text(SCRIPT)
        user.own(root)
        os.chmod(root / "fixed", 0o555)
        codes = {}
        for words in (
            ("ask", "--model", f"scripted:{root}/script.toml", "how many?"),
            ("history",),
            ("memory", "list"),
            ("memory", "add", "x"),
        ):
            process = user.start_python(CALL, words[0], "-C", str(root / "fixed"), *words[1:], home=root / "home")
            codes[words[:2]] = process.wait(60)
    assert list(codes.values()) == [0, 0, 0, 42], codes
