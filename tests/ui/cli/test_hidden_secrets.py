"""No command reads a secret of the workspace, however many there are and wherever they lie."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from users import NAMES, User, become

pytestmark = pytest.mark.hostile

CANARY = "canary-7f3a"
LOOK = f"grep -r {CANARY} . && echo FOUND; true"


@dataclass
class Place:
    """A workspace of one of the users, and the command line in it."""

    user: User
    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def lay(self, *paths: str, text: str = CANARY) -> None:
        for path in paths:
            file = self.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        self.user.own(self.folder)
        words = self.user.words([self.user.python, "-B", "-m", "pawl", "run", "--", "sh", "-c", script])
        environment = self.user.environment(self.folder)
        return subprocess.run(words, env=environment, cwd=self.workspace, capture_output=True, text=True, check=False)


@pytest.fixture(params=NAMES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    user = become(request.param)
    with user.folder() as folder:
        (folder / "workspace").mkdir()
        yield Place(user, folder)


@pytest.mark.spec("A15", "F4")
@pytest.mark.attack("A26")
def test_no_number_of_files_or_secrets_brings_one_to_light(place: Place):
    place.lay(*(f"keys/{number}.pem" for number in range(300)))
    place.lay(*(f"many/{number:04}.txt" for number in range(1100)), text="plain")
    place.lay("many/zz.env", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/.env", "node_modules/p/.env", ".venv/lib/x.key", "Cfg/.ENV")
    place.lay("vendor/repo/.git/HEAD", text="ref: refs/heads/main\n")
    place.lay("vendor/repo/.env", ".tox/.npmrc", ".git/.env", ".mypy_cache/id_rsa", "home/.ssh/deep/er/config")
    said = place.run(LOOK)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "nothing changed\n")


@pytest.mark.attack("A26")
def test_no_move_copy_or_link_brings_a_secret_to_light(place: Place):
    place.lay("conf/.env", "conf/deep/server.key", ".env")
    (place.workspace / "alias").symlink_to("conf/.env")
    script = (
        "cat alias; ln .env plain; mv .env other; ln -s conf/.env third; mv conf moved; cp -r moved copied; "
        "chmod -R u+rw .; cat plain other third; " + LOOK
    )
    said = place.run(script)
    assert CANARY not in said.stdout + said.stderr
    assert "FOUND" not in said.stdout
    assert (place.workspace / ".env").read_text() == (place.workspace / "conf/.env").read_text() == CANARY


@pytest.mark.attack("A26")
def test_a_secret_is_hidden_under_its_other_names_too(place: Place):
    place.lay(".env", "settings/plain.txt", "accounts/first/config")
    os.link(place.workspace / ".env", place.workspace / "settings/hard")
    (place.workspace / "settings/.env").symlink_to("plain.txt")
    (place.workspace / ".ssh").symlink_to("accounts")
    (place.workspace / ".aws").symlink_to(place.workspace.parent)
    (place.workspace / ".gnupg").symlink_to(".gnupg")
    assert place.run(LOOK).stdout == ""


@pytest.mark.attack("A26")
def test_a_link_with_the_name_of_a_secret_hides_no_source_code_and_still_hides_everything_else(place: Place):
    place.lay("app/settings.py", "app/production", "keys/first.py/id_rsa")
    (place.workspace / ".env").symlink_to("app/settings.py")
    (place.workspace / ".env.local").symlink_to("app/production")
    (place.workspace / "app/link.py").symlink_to("production")
    (place.workspace / ".env.test").symlink_to("app/link.py")
    said = place.run("cat app/settings.py; echo; cat app/production app/link.py .env.test keys/first.py/id_rsa")
    assert said.stdout.splitlines() == [CANARY], said


@pytest.mark.attack("A26")
def test_a_folder_that_cannot_be_searched_is_not_opened_by_a_command(place: Place):
    place.lay("closed/.env", "listed/.env")
    (place.workspace / "listed").chmod(0o300)
    (place.workspace / "closed").chmod(0)
    said = place.run("chmod 700 closed listed; " + LOOK)
    assert "FOUND" not in said.stdout
    deep = place.workspace
    for _ in range(520):
        deep = deep / "d"
    os.makedirs(deep)
    (deep / ".env").write_text(CANARY)
    assert place.run(LOOK).stdout == ""


def test_certificates_of_packages_are_shown_and_keys_among_them_are_not(place: Place):
    place.lay(".venv/lib/site-packages/certifi/cacert.pem", text="-----BEGIN CERTIFICATE-----\n")
    place.lay("node_modules/x/key.pem", text="-----BEGIN RSA PRIVATE KEY-----\n")
    (place.workspace / ".venv/cert.pem").symlink_to("lib/site-packages/certifi/cacert.pem")
    said = place.run("cat .venv/lib/site-packages/certifi/cacert.pem .venv/cert.pem node_modules/x/key.pem")
    assert said.stdout == "-----BEGIN CERTIFICATE-----\n" * 2


@pytest.mark.spec("F4")
def test_a_change_of_a_hidden_secret_is_held_back_and_said(place: Place):
    place.lay(".env", "conf/prod.env")
    said = place.run("echo x > .env; rm -f conf/prod.env; echo new > conf/prod.env; echo 1 > conf/plain")
    assert "conf/prod.env" in said.stderr
    assert "secret" in said.stderr
    assert "conf/plain" in said.stderr
    assert (place.workspace / "conf/prod.env").read_text() == CANARY


@pytest.mark.attack("A26")
def test_special_files_of_the_workspace_do_not_hang_a_command(place: Place):
    place.lay("plain", text="plain\n")
    for name in (".gitignore", "pyproject.toml", ".env"):
        os.mkfifo(place.workspace / name)
    said = place.run("cat .gitignore pyproject.toml .env plain; ls -A")
    assert said.stdout.splitlines() == ["plain", "plain"]


def test_a_hidden_file_in_the_root_is_said_where_a_command_may_miss_it(project):
    pawl = project({".env": "A=1\n", "app.py": "x = 1\n"})
    told = "'.env' is hidden from commands"
    assert f"{told}; --secrets shows it" in pawl("run", "--", "true").err
    assert told not in pawl("run", "--secrets", "--", "true").err
    assert f"{told}; --secrets shows it" in pawl("dev", "start").err
    assert told in pawl.json("verify", code=6)["notes"]
    (pawl.workspace / ".env").unlink()
    assert told not in pawl("run", "--", "true").err
