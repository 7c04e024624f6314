"""What the tools that edit hand back."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.edits import Edited


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    edits: tuple[Edited, ...]

    @property
    def text(self) -> str:
        return "\n".join(_line(edit) for edit in self.edits)


def _line(edit: Edited) -> str:
    if edit.after is None:
        did = "deleted"
    elif edit.before is None:
        did = "created"
    else:
        did = "changed"
    lines = "1 line" if edit.changed_lines == 1 else f"{edit.changed_lines} lines"
    return "; ".join([f"{did} {edit.path}: {lines}", *edit.notes])
