"""A folder behind its descriptor, with the kernel's own guard and with the walk that stands in for it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from world import lay

from pawl.core.change import NodeKind
from pawl.core.errors import NotAFile, NotFound, PathRefused, TooLarge
from pawl.settings import files as module
from pawl.settings.files import Tree

NO_SUCH_CALL = 9999


@pytest.fixture(params=["openat2", "walk"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if request.param == "walk":
        monkeypatch.setattr(module, "_OPENAT2", NO_SUCH_CALL)
    lay(
        tmp_path,
        {
            "outside/secret": b"secret",
            "root/a/b/file": b"text",
            "root/out": "../outside",
            "root/in": "a",
            "root/a/up": "..",
            "root/a/link": "b/file",
        },
    )
    with Tree(tmp_path / "root") as opened:
        yield opened


@pytest.mark.attack("A04", "A05", "A06")
@pytest.mark.parametrize("path", ["out/secret", "in/b/file", "a/up/a/b/file", "out/new/deep", "a/link"])
def test_no_path_leads_through_a_link(tree: Tree, path: str):
    with pytest.raises(PathRefused):
        tree.read(path)


@pytest.mark.parametrize("path", ["out", "in", "a/up"])
def test_a_link_is_no_folder_to_be_opened(tree: Tree, path: str):
    assert tree.look(path).kind is NodeKind.LINK
    with pytest.raises(PathRefused):
        tree.open_folder(path)
    with pytest.raises(PathRefused):
        tree.look(f"{path}/anything")
    assert tree.find(f"{path}/anything") is None


@pytest.mark.parametrize("path", ["../outside", "a/../../outside", "a/../.."])
def test_no_dots_lead_out(tree: Tree, path: str):
    with pytest.raises((PathRefused, OSError)):
        os.close(tree.open_folder(path))


def test_what_is_not_there_and_what_is_no_folder_are_told_apart(tree: Tree):
    assert tree.look("a/b/missing") is None
    assert tree.look("a/b/file/below") is None
    with pytest.raises(NotFound):
        tree.read("missing/file")
    with pytest.raises(NotAFile):
        tree.read("a/b")
    with pytest.raises(NotADirectoryError):
        tree.open_folder("a/b/file")
    assert tree.kinds("a") == {"b": NodeKind.DIRECTORY, "link": NodeKind.LINK, "up": NodeKind.LINK}
    assert list(tree.entries("a")) == tree.names("a") == ["b", "link", "up"]


@pytest.mark.attack("A09")
def test_special_files_are_refused_at_once(tree: Tree):
    os.mkfifo(Path(tree.root) / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{tree.root}/socket")
    server.close()
    for name in ("pipe", "socket"):
        assert tree.look(name).kind is None
        assert tree.kinds()[name] is None
        with pytest.raises(NotAFile):
            tree.read(name)
        with pytest.raises(NotAFile):
            tree.node(name)


def test_a_path_longer_than_the_kernel_takes_can_be_read(tree: Tree):
    names = ["ä" * 120] * 30
    fd = os.dup(tree.fd)
    for name in names:
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    file = os.open("bottom", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(file, b"deep")
    os.close(file)
    os.close(fd)
    path = "/".join([*names, "bottom"])
    assert len(path.encode()) > 4096
    assert tree.read(path) == b"deep"
    with pytest.raises(TooLarge):
        tree.read(path, limit=3)
