"""Language servers on a bench: who hosts the client there, and which of them are part of the ladder."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pawl.app.environments import brought_along, own_python

if TYPE_CHECKING:
    # Every bench asks here what it must show; the client for servers is loaded by those who ask one.
    from pawl.verify.choosing import Placed
    from pawl.verify.kinds import Kind
    from pawl.verify.lsp.host import Host
    from pawl.verify.project import Folder


def host() -> Host:
    """What runs the client on the bench."""
    from pawl.verify.lsp.host import Host

    python, (_, package) = own_python()
    return Host(python=python, package=package)


def readable() -> tuple[str, ...]:
    """What a bench must show so that Pawl's own tools and its client for language servers can run there."""
    return (*brought_along().values(), *own_python()[1])


def diagnostics_steps(files: Folder, kinds: Collection[Kind], wanted: Collection[str]) -> tuple[Placed, ...]:
    """A step for each server that the user names, or that says what no other step says."""
    from pawl.verify.choosing import Placed
    from pawl.verify.kinds import Kind
    from pawl.verify.lsp.diagnosing import Diagnostics, servers_for, uncovered

    chosen = servers_for(files, wanted) if wanted else uncovered(files, kinds)
    endings = ("*.json", "*.toml", "*.mod", "*.sum")
    return tuple(
        Placed(
            Diagnostics(one, host()),
            Kind.DIAGNOSTICS,
            (*(f"*{ending}" for group in one.languages.values() for ending in group), *endings),
        )
        for one in chosen
    )
