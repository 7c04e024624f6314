"""A user with a project, a scripted model and a wish: what is said, what comes of it, what stands in the files then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pawl.agent.session import Session
from pawl.core.run import Approval, ApprovalAnswer, ApprovalResponse, Report, RunRequest
from pawl.settings.config import load
from pawl.workspace.project import Project


def say(text: str) -> dict[str, object]:
    return {"answer": {"text": text}}


DELIVERED = say('{"state": "DONE", "evidence": ["the change"], "remaining": []}')
"""The delivery check finds nothing missing."""


def call(name: str, **arguments: object) -> dict[str, object]:
    """A turn in which the model calls one tool."""
    return {"answer": {"text": "", "calls": [{"name": name, "arguments": arguments}]}}


def patch(path: str, old: str, new: str) -> dict[str, object]:
    return call("strict_patch", path=path, old=old, new=new)


@dataclass
class Story:
    workspace: Path
    script: Path
    events: list[object] = field(default_factory=list)
    meanwhile: Callable[[object], None] = lambda event: None
    """What the user does while the run is under way."""

    def model_says(self, *turns: Mapping[str, object]) -> None:
        """The whole of what the model will say, turn by turn."""
        self.script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))

    def user_writes(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def read(self, name: str) -> str:
        return (self.workspace / name).read_text()

    def files(self) -> dict[str, str]:
        every = sorted(path for path in self.workspace.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.workspace)): path.read_text() for path in every}

    def do(self, text: str, *, approve: str = "final", **order: object) -> Report:
        with self.session() as session:
            made = RunRequest(text=text, approval=Approval(approve), **{"model": f"scripted:{self.script}", **order})
            return session.do(made)

    def approve(self, report: Report, *, hunks: Sequence[int] = (), digest: str = "") -> Report:
        """The user's yes, from a process of its own."""
        assert report.question is not None
        with self.session() as session:
            digest = digest or report.question.digest
            return session.answer(
                report.run, ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest, hunks=tuple(hunks))
            )

    def reject(self, report: Report, reason: str) -> Report:
        assert report.question is not None
        with self.session() as session:
            answer = ApprovalResponse(answer=ApprovalAnswer.REJECT, digest=report.question.digest, reason=reason)
            return session.answer(report.run, answer)

    def resume(self, run: str) -> Report:
        with self.session() as session:
            return session.resume(run)

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self.shop() as shop:
            yield Session(shop, self._hear)

    def _hear(self, event: object) -> None:
        self.events.append(event)
        self.meanwhile(event)

    @contextmanager
    def shop(self) -> Iterator[Project]:
        with Project.open(load(), self.workspace) as shop:
            yield shop

    def happened(self, run: str) -> list[str]:
        """The kinds of events that the store has of a run."""
        with self.shop() as shop:
            return [str(event["kind"]) for event in shop.store.events.read(shop.workspace, run=run)]
