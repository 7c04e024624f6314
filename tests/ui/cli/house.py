"""A workspace of one of the users of this machine, with Pawl to call in it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nursery import PATIENCE
from users import User
from world import lay

CALL = "import sys; from pawl.__main__ import main; sys.argv[0] = 'pawl'; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class House:
    """A workspace of a user, with Pawl to call in it."""

    user: User
    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "w"

    def __call__(self, *words: str, stdin: str = "", at: Path | None = None) -> tuple[int, str, str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = (words[0], "-C", str(at or self.workspace), *words[1:])
        process = self.user.start_python(CALL, *words, home=self.folder, text=True, **pipes)
        out, err = process.communicate(stdin, timeout=PATIENCE)
        return process.returncode, out, err

    def json(self, *words: str) -> dict:
        code, out, err = self(words[0], "--json", *words[1:])
        assert out, (code, err)
        return json.loads(out)

    def applied(self, script: str, *options: str) -> dict:
        return self.json("run", "--apply", *options, "--", "sh", "-c", script)

    def set(self, text: str) -> None:
        config = self.folder / ".config/pawl/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text)
        self.user.own(self.folder / ".config")

    def lay(self, tree: dict) -> None:
        lay(self.workspace, tree)
        self.user.own(self.workspace)


def held(said: dict) -> dict[str, tuple[str, str]]:
    return {one["path"]: (one["reason"], one["rule"]) for one in said["held"]}
