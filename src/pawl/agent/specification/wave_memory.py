"""Notes of a finished wave for the memory bank: what is done, decided and open."""

from __future__ import annotations

import re

from pawl.agent.specification.spec_folder import SpecFolder, constitution, read_text
from pawl.agent.specification.task_list import SpecTask
from pawl.agent.workspace_memory import Note

_DECISION = re.compile(r"(?m)^[ \t]*(?:[-*]\s+)?\*{0,2}Decision\*{0,2}\s*:\*{0,2}\s*(?P<text>\S.*)$")
_UNCLEAR = re.compile(r"\[NEEDS CLARIFICATION:?\s*(?P<text>[^\]]*)\]")
_PRINCIPLE = re.compile(r"(?m)^###\s+(?P<text>[A-Za-z0-9](?:.*\S)?)")


def wave_notes(spec: SpecFolder, number: int, tasks: tuple[SpecTask, ...]) -> list[Note]:
    done = "; ".join(f"{one.id} {one.what}" for one in tasks)
    decisions = [match["text"] for match in _DECISION.finditer(spec.read("research.md"))]
    unclear = [match["text"] for part in ("spec.md", "plan.md") for match in _UNCLEAR.finditer(spec.read(part))]
    law = constitution(spec.shop)
    principles = [match["text"] for match in _PRINCIPLE.finditer(read_text(spec.shop, law))] if law else []
    return [
        Note(file="progress.md", section="Done", items=(f"{spec.name}, wave {number}: {done}",)),
        Note(file="progress.md", section="Open questions", items=tuple(unclear) or ("none",), replace=True),
        Note(file="decisions.md", section="Decisions", items=tuple(f"{spec.name}: {one}" for one in decisions)),
        Note(file="project.md", section="Conventions", items=tuple(principles)),
    ]
