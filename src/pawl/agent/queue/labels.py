"""The labels of a worker: the languages, memory and sandbox of its machine, and words of the user's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from shutil import which

from pawl.core.errors import UsageError
from pawl.core.execution import Confinement
from pawl.workspace.benches import open_sandbox_for
from pawl.workspace.project import Project

_PROGRAMS = {
    "python": "python3",
    "node": "node",
    "go": "go",
    "rust": "cargo",
    "java": "javac",
    "c": "cc",
    "ruby": "ruby",
    "git": "git",
    "docker": "docker",
}


def labels_here(shop: Project, own: Iterable[str]) -> frozenset[str]:
    """`python`, `memory:1` to as many gigabytes as there are, `sandbox:namespaces`, and the words of the user."""
    found = {label for label, program in _PROGRAMS.items() if which(program, path=shop.config.search_path)}
    gigabytes = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30))
    found |= {f"memory:{one}" for one in range(1, gigabytes + 1)}
    strength = [Confinement.NONE, Confinement.LANDLOCK, Confinement.NAMESPACES]
    confinement = open_sandbox_for(shop).protection().confinement
    # The stronger one does for whoever asks for the weaker.
    found |= {f"sandbox:{one}" for one in strength[1 : strength.index(confinement) + 1]}
    return frozenset({*found, *map(checked_label, own)})


def checked_label(label: str) -> str:
    if not re.fullmatch(r"[^\s,]+", label):
        raise UsageError(
            f"{label!r} is not a label", advice="a word such as gpu or memory:16; repeat the option for more"
        )
    return label
