"""The marks of an upper layer, made by hand where this kernel would choose others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from world import lay

from pawl.settings.files import Tree
from pawl.workspace.overlay import differences
from pawl.workspace.paths import OwnTree


def changed(folder: Path) -> dict[str, str]:
    with OwnTree(folder / "upper") as upper, Tree(folder / "lower") as lower:
        return {
            one.path: f"{getattr(one.before, 'kind', None)} {getattr(one.after, 'kind', None)}"
            for one in differences(upper, lower, 2**63)
        }


def test_a_deletion_may_be_an_attribute_of_an_empty_file(tmp_path: Path):
    lay(tmp_path, {"lower/a": b"1", "lower/b": b"1", "lower/d/x": b"1", "upper/a": b"", "upper/b": b"", "upper/d": b""})
    os.setxattr(tmp_path / "upper/a", "user.overlay.whiteout", b"")
    os.setxattr(tmp_path / "upper/d", "user.overlay.whiteout", b"")
    assert changed(tmp_path) == {
        "a": "file None",
        "b": "file file",
        "d": "directory None",
        "d/x": "file None",
    }


@pytest.mark.parametrize("space", ["user", pytest.param("trusted", marks=pytest.mark.root)])
def test_an_opaque_folder_hides_what_is_below_it_whoever_mounted_the_overlay(tmp_path: Path, space: str):
    lay(tmp_path, {"lower/d/old": b"1", "lower/d/in/old": b"1", "upper/d/in/new": b"1"})
    os.setxattr(tmp_path / "upper/d", f"{space}.overlay.opaque", b"y")
    assert changed(tmp_path) == {"d/old": "file None", "d/in/old": "file None", "d/in/new": "None file"}


def test_a_folder_that_only_may_hold_marked_files_hides_nothing(tmp_path: Path):
    lay(tmp_path, {"lower/d/old": b"1", "upper/d/new": b"1"})
    os.setxattr(tmp_path / "upper/d", "user.overlay.opaque", b"x")
    assert changed(tmp_path) == {"d/new": "None file"}
