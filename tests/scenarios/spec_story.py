"""A specification that a scripted model carries out: what it says for each task, and what stands in git then."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ui.cli.console import PAWL, Pawl, Said

LONGEST = 900

REVIEW_OFF = 'review = "off"\n'


def write(*files: tuple[str, str], user: str) -> list[dict]:
    """Turns in which the model writes these files for the request that holds the word, and ends."""
    calls = [{"name": "file_write", "arguments": {"path": path, "content": text}} for path, text in files]
    return [
        {"match": {"user": user, "answered": ["file_write"] * len(files)}, "answer": {"text": f"{user} is done."}},
        {"match": {"user": user}, "answer": {"text": "", "calls": calls}},
    ]


class SpecStory:
    def __init__(self, pawl: Pawl, script: Path) -> None:
        self.pawl, self.script = pawl, script
        self.model = f"scripted:{script}"

    def lay(self, files: Mapping[str, str], message: str = "Specify it") -> None:
        for name, text in files.items():
            path = self.pawl.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def model_says(self, *turns: dict, times: int = 0) -> None:
        delivered = {
            "match": {"schema": True},
            "times": 0,
            "answer": '{"state": "DONE", "evidence": ["it"], "remaining": []}',
        }
        every = [{**turn, "times": turn.get("times", times)} for turn in turns]
        self.script.write_text("".join(f"{json.dumps(turn)}\n" for turn in (*every, delivered)))

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.pawl.workspace, check=True, capture_output=True, text=True)
        return done.stdout

    def commits(self) -> list[str]:
        """The titles, oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()

    def spec(self, *words: str) -> Said:
        if words[0] in ("orchestrate", "analyze", "status", "issues"):
            return self.pawl("spec", *words)
        # A wave is silent while its tests run, on a slow machine for longer than others are waited for.
        line = [*PAWL, "spec", *words, "--model", self.model]
        done = subprocess.run(
            line,
            cwd=self.pawl.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def planned(self) -> None:
        assert self.spec("orchestrate").code == 0
        self.git("add", "-A")
        self.git("commit", "-qm", "Plan it")

    def runs(self) -> list[dict]:
        """Each request to the model, in order."""
        return self.pawl.json("requests")["requests"]
