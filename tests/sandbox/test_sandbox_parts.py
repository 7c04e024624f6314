"""The parts that need no sandbox: captured output, layers, toolchains, groups, disk use."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.errors import CommandNotFound
from pawl.core.execution import Confinement, CopyView, Limits, Network, OverlayView
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.process import Programs, StreamCapture
from pawl.sandbox.process_limits import (
    Group,
    Hierarchy,
    children,
    find_hierarchy,
    nameless_bytes,
    remove_leftovers,
    started_at,
    stored_bytes,
    tree_use,
)
from pawl.sandbox.visibility import (
    Layers,
    Scenery,
    Surroundings,
    check_command,
    is_below,
    linked_repository,
    readonly_roots,
    system_files,
    visible_path,
)

pytestmark = pytest.mark.spec("F4")


@given(limit=st.integers(0, 50), pieces=st.lists(st.binary(max_size=60), max_size=8))
def test_a_capture_keeps_the_start_and_the_end(limit, pieces):
    capture = StreamCapture(limit)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    captured = capture.captured()
    assert captured.total == len(whole)
    assert captured.dropped == max(0, len(whole) - limit)
    assert whole.startswith(captured.head)
    assert whole.endswith(captured.tail)
    if captured.dropped == 0:
        assert captured.head + captured.tail == whole


def lay_layers(tmp_path: Path) -> Layers:
    for name in ("workspace", "upper"):
        (tmp_path / name).mkdir()
    return Layers(OverlayView(workspace=str(tmp_path / "workspace"), upper=str(tmp_path / "upper"), work="", merged=""))


def test_layers_agree_with_what_is_seen_inside(site):
    """Every path that `find` sees inside is found from outside with the same kind, and nothing else is."""
    for name in ("stays/deep/file", "gone/file", "replaced/old", "half/kept", "half/lost", "turned"):
        path = site.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    site.user.own(site.folder)
    script = """
rm -r gone half/lost; rm -r replaced; mkdir replaced; echo > replaced/new; rm turned; mkdir turned; echo > turned/in
ln -s stays/deep link; ln -s $PWD/half absolute; ln -s ../outside out; ln -s missing dangling; mv half/kept half/moved
"""
    assert site.shell(script)["code"] == 0
    answer = site.shell("find . -mindepth 1 -printf '%P %y\\n'")
    inside = dict(line.rsplit(" ", 1) for line in answer["stdout"]["text"].splitlines())
    layers = Layers(OverlayView(**site.view()))
    kinds = {0o040000: "d", 0o100000: "f", 0o120000: "l"}
    candidates = set(inside) | {"gone", "gone/file", "replaced/old", "half/lost", "half/kept", "turned/x", "kept.txt/x"}
    seen = {path: place for path in candidates if (place := layers.stand(path)) is not None}
    assert {path: kinds[place.mode & 0o170000] for path, place in seen.items()} == inside
    assert layers.follow("link/file").path == "stays/deep/file"
    assert layers.follow("absolute/moved").path == "half/moved"
    assert layers.follow("out").is_outside
    assert layers.follow("dangling") is None
    assert layers.follow("link/..").path == "stays"
    assert layers.follow("link/../../..").is_outside


def test_a_loop_of_links_leads_nowhere(tmp_path):
    layers = lay_layers(tmp_path)
    (tmp_path / "workspace/a").symlink_to("b")
    (tmp_path / "workspace/b").symlink_to("a")
    assert layers.follow("a") is None


def test_a_git_file_that_never_ends_to_be_read_is_not_read(tmp_path):
    layers = lay_layers(tmp_path)
    (tmp_path / "workspace/.git").write_text("gitdir: trap\n")
    (tmp_path / "workspace/trap").mkdir()
    os.mkfifo(tmp_path / "workspace/trap/gitdir")
    assert linked_repository(layers) == ()


@pytest.mark.parametrize(
    "files", [{".git": "gitdir: a\0b\n"}, {".git": "gitdir: in\n", "in/gitdir": "\0", "in/commondir": "\0"}]
)
def test_a_git_file_with_a_nul_in_it_leads_nowhere(tmp_path, files):
    layers = lay_layers(tmp_path)
    for name, text in files.items():
        (tmp_path / "workspace" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "workspace" / name).write_text(text)
    assert linked_repository(layers) == ()


def test_names_are_compared_whole():
    assert is_below("/w/a", "/w")
    assert is_below("/w", "/w")
    assert not is_below("/w-old", "/w")
    assert is_below("/anything", "/")


HOME_TOOLS = (".pyenv/versions", ".cargo/bin", ".cargo/registry", ".rustup/toolchains", "go/pkg/mod", ".nvm/versions")


def roots_of(home: Path, *extra: str, workspace: str = "/nowhere") -> set[str]:
    found = readonly_roots(Surroundings(home=str(home), extra_readonly=extra), workspace)
    return {root.path for root in found if is_below(root.path, str(home.parent))}


@pytest.fixture
def home(tmp_path):
    place = tmp_path.resolve() / "home"
    place.mkdir()
    return place


def test_only_toolchains_that_exist_are_shown(home):
    assert roots_of(home) == set()
    for name in HOME_TOOLS:
        (home / name).mkdir(parents=True)
    expected = {".pyenv", ".cargo/bin", ".cargo/registry", ".rustup/toolchains", "go/pkg/mod", ".nvm/versions"}
    assert roots_of(home) == {str(home / name) for name in expected}


@pytest.mark.attack("A26")
@pytest.mark.parametrize("target", [".ssh", ".config/gh", ".", "..", ".cargo", ".ssh/deep"])
def test_no_root_leads_to_credentials(home, target):
    for name in (".ssh/deep", ".config/gh", ".cargo"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / ".pyenv").symlink_to(home / target)
    assert roots_of(home, str(home / target), str(home / ".pyenv")) == set()


def test_a_linked_toolchain_is_shown_under_both_of_its_names(home):
    elsewhere = home.parent / "big-disk"
    elsewhere.mkdir()
    (home / ".pyenv").symlink_to(elsewhere)
    assert roots_of(home) == {str(home / ".pyenv"), str(elsewhere)}


def test_what_lies_in_the_workspace_is_part_of_the_view(home):
    workspace = home / "project"
    (workspace / ".venv").mkdir(parents=True)
    (workspace / "outward").symlink_to(home.parent)
    assert roots_of(home, str(workspace / ".venv"), str(workspace / "outward"), workspace=str(workspace)) == set()


@pytest.mark.attack("A45")
def test_the_path_inside_has_no_relative_and_no_unseen_entries(home):
    tools = home / ".cargo/bin"
    tools.mkdir(parents=True)
    surroundings = Surroundings(home=str(home), path=f".::bin:{tools}:{home}/bin:/w/bin:/usr/bin:/sbin/../etc")
    roots = readonly_roots(surroundings, "/w")
    assert visible_path(surroundings, "/w", roots) == f"{tools}:/w/bin:/usr/bin:/usr/local/bin:/bin"


def test_name_servers_are_shown_only_with_the_network():
    assert "/etc/resolv.conf" not in system_files(Network.OFF)
    assert not any("shadow" in path or "private" in path for path in system_files(Network.ON))


def test_a_name_close_to_a_program_is_offered(tmp_path):
    scenery = Scenery(Layers(CopyView(workspace=str(tmp_path), copy=str(tmp_path))), (), "/usr/bin")
    with pytest.raises(CommandNotFound) as error:
        check_command(scenery, "pythom3", str(tmp_path))
    assert "python3" in error.value.advice


def lay_unified(tmp_path: Path, offered: str) -> tuple[Path, str]:
    """A version 2 hierarchy as files: a scope with processes, and its parent that offers controllers."""
    own = tmp_path / "user.slice/app.slice/terminal.scope"
    own.mkdir(parents=True)
    for folder in (own, own.parent):
        (folder / "cgroup.procs").touch()
    (own.parent / "cgroup.subtree_control").write_text(offered)
    return own.parent, "0::/user.slice/app.slice/terminal.scope\n"


def test_unified_groups_are_made_beside_ones_own(tmp_path):
    parent, membership = lay_unified(tmp_path, "cpu memory pids\n")
    hierarchy = find_hierarchy(tmp_path, membership)
    assert hierarchy == Hierarchy(2, {"pids": parent, "memory": parent})
    group = Group(hierarchy, "pawl-1-2-0")
    group.limit(Limits(processes=7, memory_bytes=1 << 20))
    group.admit(42)
    made = parent / "pawl-1-2-0"
    assert {path.name: path.read_text() for path in made.iterdir()} == {
        "pids.max": "7",
        "memory.max": str(1 << 20),
        "cgroup.procs": "42",
    }
    (made / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert group.out_of_memory_kills() == 2


@pytest.mark.parametrize("membership", ["0::/\n", "0::/missing/scope\n", ""])
def test_where_no_group_can_be_made_there_is_none(tmp_path, membership):
    assert find_hierarchy(tmp_path, membership) is None


def test_a_parent_that_offers_nothing_is_no_place_for_groups(tmp_path):
    _, membership = lay_unified(tmp_path, "cpu\n")
    assert find_hierarchy(tmp_path, membership) is None


def test_single_groups_are_made_below_ones_own(tmp_path):
    own = tmp_path / "pids/mine"
    own.mkdir(parents=True)
    (own / "tasks").touch()
    assert find_hierarchy(tmp_path, "4:pids:/mine\n3:memory:/absent\n") == Hierarchy(1, {"pids": own})


def test_groups_of_dead_processes_are_removed_and_others_are_not(tmp_path):
    alive = f"pawl-{os.getpid()}-{started_at(os.getpid())}-0"
    names = (alive, f"pawl-{os.getpid()}-1-0", "pawl-4000000-123-0", "other", "pawl-x-y-z")
    for name in names:
        (tmp_path / name).mkdir()
    remove_leftovers(Hierarchy(1, {"pids": tmp_path}))
    assert sorted(os.listdir(tmp_path)) == sorted([alive, "other", "pawl-x-y-z"])


def test_stored_bytes_count_each_file_once_and_follow_no_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(os.urandom(100_000))
    once = stored_bytes(str(tmp_path / "folder"))
    assert 100_000 <= once < 120_000
    os.link(tmp_path / "folder/file", tmp_path / "folder/second")
    (tmp_path / "folder/link").symlink_to("/usr")
    assert stored_bytes(str(tmp_path / "folder")) < once + 10_000


def test_what_stood_there_before_is_not_counted(tmp_path):
    before = time.time_ns()
    (tmp_path / "old").write_bytes(os.urandom(1 << 20))
    assert stored_bytes(str(tmp_path), before - 10**9) >= 1 << 20
    assert stored_bytes(str(tmp_path), time.time_ns() + 10**9) == 0


def test_a_file_without_a_name_is_counted(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.write(os.urandom(1 << 20))
        file.flush()
        assert nameless_bytes([os.getpid()]) < 1 << 20
        (tmp_path / "file").unlink()
        assert nameless_bytes([os.getpid()]) >= 1 << 20


def test_a_tree_without_descendants_uses_nothing():
    assert tree_use(2**22 - 1).processes == ()
    assert children(2**22 - 1) == ()


def test_the_probes_say_what_works_here(home):
    protection = ChosenSandbox(Surroundings(home=str(home))).protection()
    works = {probe.name: probe.works for probe in protection.probes}
    assert protection.confinement is Confinement.NAMESPACES
    assert protection.overlay
    assert works.pop("control groups") in (True, False)
    assert works.pop("Landlock") in (True, False)
    assert works == dict.fromkeys(("bubblewrap", "user namespaces", "system call filter", "sandbox", "overlay"), True)


def test_probes_that_fail_name_a_remedy(home):
    nothing = Programs(bubblewrap=None, unshare=None, mount=None)
    protection = ChosenSandbox(Surroundings(home=str(home)), programs=nothing).protection()
    failed = [probe for probe in protection.probes if not probe.works]
    assert {"bubblewrap", "user namespaces", "sandbox", "overlay"} <= {probe.name for probe in failed}
    assert all(probe.remedy for probe in failed)
    assert protection.confinement is not Confinement.NAMESPACES
    assert not protection.overlay
