"""The gate for reading: which files of a workspace may reach a model or a helper, whichever way they take."""

from __future__ import annotations

from pawl.core.change import ChangeSet
from pawl.core.guardrails import Guardrails, Permission
from pawl.settings.config import Config
from pawl.settings.permissions import Permissions, read_rules


class ReadGate:
    """The rules about reading, with the guardrails.

    A rule that asks refuses here, because whoever packs or searches cannot ask. A single file that the user says yes to
    is granted where it was asked about.
    """

    def __init__(self, permissions: Permissions, guardrails: Guardrails) -> None:
        self._guardrails = guardrails
        self._reads = permissions.judge_reads()
        self._lists = permissions.judge_reads(searching=True)

    def judge(self, path: str) -> Permission | None:
        """The rule that denies reading the file or asks about it; None where none does."""
        return self._reads(path)

    def lists(self, path: str) -> bool:
        """Whether the file may be named in a list or a search."""
        return self._lists(path) is None

    def shows(self, path: str) -> bool:
        """Whether the file may be named and quoted: no rule is against it, and it holds no secrets."""
        return self.lists(path) and not self._guardrails.is_secret(path) and not self._guardrails.never(path)

    def shown(self, changes: ChangeSet) -> ChangeSet:
        """The changes of files that may be quoted."""
        return changes.without(path for path in changes.paths if not self.shows(path))


def read_gate(config: Config, workspace: str, guardrails: Guardrails) -> ReadGate:
    """The gate of a workspace, by the rules as they stand now."""
    return ReadGate(read_rules(config, workspace, guardrails.others), guardrails)
