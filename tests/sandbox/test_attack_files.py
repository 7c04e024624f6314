"""Ways to reach files outside the bench, and the repository's own settings."""

from __future__ import annotations

import subprocess

import pytest
from sandbox.site import Site, denied
from world import snapshot

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4")]

VICTIMS = ("create", "overwrite", "append", "truncate", "delete", "link", "move", "hard")


def lay_victims(site: Site) -> None:
    for name in VICTIMS[1:]:
        (site.outside / name).write_text("victim\n")
    (site.home / ".bashrc").write_text("# mine\n")
    site.user.own(site.folder)


def file_attacks(site: Site) -> list[tuple]:
    out = str(site.outside)
    return [
        ("write_file", f"{out}/create"),
        ("write_file", f"{out}/overwrite"),
        ("append_file", f"{out}/append"),
        ("truncate_file", f"{out}/truncate"),
        ("delete_file", f"{out}/delete"),
        ("write_through_link", f"{out}/link"),
        ("move_in", f"{out}/move"),
        ("link_in", f"{out}/hard"),
        ("append_file", f"{site.home}/.bashrc"),
    ]


@pytest.mark.attack("A15")
def test_nothing_outside_the_bench_can_be_written(any_site):
    lay_victims(any_site)
    before = snapshot(any_site.outside), snapshot(any_site.home)
    system = [("write_file", "/opt/pawl-attack"), ("write_file", "/usr/pawl-attack"), ("write_file", "/pawl-attack")]
    answers = any_site.probe(*file_attacks(any_site), *system)
    assert denied(answers), answers
    assert (snapshot(any_site.outside), snapshot(any_site.home)) == before


@pytest.mark.attack("A15")
def test_the_file_probes_do_come_through_without_a_sandbox(site):
    lay_victims(site)
    assert site.probe_bare(*file_attacks(site)) == ["allowed"] * 9


@pytest.mark.attack("A15")
def test_a_shell_finds_its_own_home_and_not_the_users(site):
    lay_victims(site)
    answer = site.shell("echo x >> ~/.bashrc && pwd && ls -A /home && ls -A ~")
    assert answer["stdout"]["text"].split()[1:3] == ["agent", ".bashrc"]
    assert (site.home / ".bashrc").read_text() == "# mine\n"


@pytest.mark.attack("A15")
def test_modes_of_files_outside_cannot_be_changed_where_there_are_namespaces(site):
    lay_victims(site)
    (answer,) = site.probe(("change_mode", f"{site.outside}/append"))
    assert answer == "denied ENOENT"


@pytest.mark.attack("A16")
def test_the_root_cannot_be_remounted_writable(any_site):
    answers = any_site.probe(("remount_writable", "/opt/pawl-attack"), ("mount_something",), ("system_call", "fsopen"))
    assert answers == ["denied EPERM"] * 3
    assert any_site.shell("mount -o remount,rw,bind / && touch /opt/pawl-attack")["code"] != 0


@pytest.mark.attack("A17")
def test_kernel_settings_cannot_be_written(any_site):
    (answer,) = any_site.probe(("rewrite_core_pattern",))
    assert answer in ("denied EROFS", "denied EACCES")


def make_repository(site: Site) -> None:
    subprocess.run(["git", "init", "-q", str(site.workspace)], check=True)
    site.user.own(site.folder)


@pytest.mark.attack("A18")
@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_the_git_folder_cannot_be_swapped_for_another(site, view):
    make_repository(site)
    site.view_kind = view
    before = snapshot(site.workspace), (site.workspace / ".git").stat().st_ino
    answer = site.shell("mv .git .git_old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit")
    assert answer["code"] != 0
    assert "busy" in answer["stderr"]["text"]
    assert site.shell("echo evil > .git/hooks/pre-commit")["code"] != 0
    assert (snapshot(site.workspace), (site.workspace / ".git").stat().st_ino) == before


@pytest.mark.attack("A18")
def test_a_writable_git_folder_is_still_only_the_benchs_own(site):
    make_repository(site)
    before = snapshot(site.workspace)
    answer = site.shell("mv .git .git_old && mkdir -p .git/hooks && echo evil > .git/hooks/x", writable_git=True)
    assert answer["code"] == 0
    assert snapshot(site.workspace) == before
    assert (site.upper / ".git/hooks/x").read_text() == "evil\n"


COMMONDIR = """\
cp -r .git evil && printf '[core]\\n\\tfsmonitor = touch "%s"\\n' {marker} >> evil/config &&
echo ../evil > .git/commondir
"""


def refresh(site: Site) -> None:
    """What the product does to show the state of the repository, in the real workspace."""
    words = site.user.words(["git", "-C", str(site.workspace), "status", "--porcelain"])
    subprocess.run(words, env=site.user.environment(site.home), capture_output=True, check=False)


@pytest.mark.attack("A19")
@pytest.mark.parametrize("writable", [False, True])
def test_a_foreign_git_configuration_stays_on_the_bench(site, writable):
    make_repository(site)
    marker = site.home / "marker"
    answer = site.shell(COMMONDIR.format(marker=marker), writable_git=writable)
    assert (answer["code"] == 0) is writable
    refresh(site)
    assert not marker.exists()


@pytest.mark.attack("A19")
def test_a_foreign_git_configuration_would_be_obeyed_in_the_workspace(site):
    make_repository(site)
    marker = site.home / "marker"
    script = COMMONDIR.format(marker=marker)
    words = site.user.words(["sh", "-c", script])
    subprocess.run(words, cwd=site.workspace, env=site.user.environment(site.home), check=True)
    refresh(site)
    assert marker.exists()


SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".local/share/pawl/pawl.db")


@pytest.mark.attack("A26")
def test_the_secrets_of_the_home_are_not_there(any_site):
    for name in SECRETS:
        path = any_site.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("CANARY")
    any_site.user.own(any_site.folder)
    paths = [str(any_site.home / name) for name in SECRETS]
    paths += ["/etc/shadow", "/etc/ssl/private", str(any_site.folder / "work"), str(any_site.home)]
    answers = any_site.probe(*[("read_file", path) for path in paths], *[("list_folder", path) for path in paths])
    assert denied(answers), answers
    assert any_site.probe_bare(*[("read_file", path) for path in paths[:5]]) == ["CANARY"] * 5
