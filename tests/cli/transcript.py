"""Documentation that is executed: plays the console blocks of a page and compares, or writes what came.

python tests/cli/transcript.py docs/commands.md      writes the answers into the page
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCRIPT = Path(sys.executable).with_name("pawl")
FILES = {
    "prices.py": """\
def total(prices):
    return sum(prices)


def mean(prices):
    return total(prices) / len(prices)
""",
    "notes.txt": "Ask Kim about the discount.\n",
    "tidy.sh": """\
sed -i 's/sum(prices)/round(sum(prices), 2)/' prices.py
rm notes.txt
""",
}
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_NORMAL = (
    (re.compile(r"\br[0-9a-f]{8}\b"), "r4f1c09ab"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-01-31 09:30"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"), "2026-01-31T09:30:00+00:00"),
    (re.compile(r"\d+\.\d MB"), "0.0 MB"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def normal(text: str) -> str:
    """The text with what differs from time to time replaced."""
    for pattern, instead in _NORMAL:
        text = pattern.sub(instead, text)
    return text


def blocks(page: str) -> list[str]:
    return _BLOCK.findall(page)


def commands(block: str) -> Iterator[str]:
    """What is typed in a block; a line that begins with > goes on."""
    typed = re.findall(r"^\$ (.*(?:\n> .*)*)", block, re.MULTILINE)
    return (command.replace("\n> ", "\n") for command in typed)


def played(block: str, folder: Path) -> str:
    """The block as it comes out now."""
    parts = []
    for command in commands(block):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        parts.append("$ " + command.replace("\n", "\n> ") + "\n" + done.stdout.decode("utf-8", "replace"))
    return normal("".join(parts))


def rewritten(page: str, folder: Path) -> str:
    return _BLOCK.sub(lambda found: played(found[0], folder), page)


def stage(folder: Path) -> Path:
    """The workspace that the pages speak of, and `pawl` where a shell finds it."""
    (folder / "bin").mkdir()
    (folder / "bin" / "pawl").symlink_to(SCRIPT)
    shop = folder / "shop"
    shop.mkdir()
    for name, text in FILES.items():
        (shop / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=shop, check=True)
    return shop


def main() -> None:
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as room:
            shop = stage(Path(room))
            os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = room  # noqa: TID251
            os.environ["PATH"] = f"{room}/bin:{os.defpath}"  # noqa: TID251
            Path(name).write_text(rewritten(Path(name).read_text(), shop))


if __name__ == "__main__":
    main()
