"""Documentation that is executed: plays the console blocks of a page and compares, or writes what came.

python tests/ui/cli/transcript.py PAGE ...      plays the pages one after the other, writes the answers into them
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pawl.models.providers import builtin

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
ANSWERS = """\
[[turn]]
match = "summed"
answer = { text = "I look for it.", calls = [{ name = "file_search", arguments = { query = "sum(" } }] }

[[turn]]
match = { answered = ["file_search"] }
answer = "In total (prices.py:2), which mean uses (prices.py:6)."

[[turn]]
match = { user = "rounded" }
answer = "No; see prices.py:2 and rounding.py:1."

[[turn]]
match = { user = "rm notes.txt" }
answer = "It deletes notes.txt (tidy.sh:2)."
"""
"""A scripted model, beside the workspace."""
SHOPPING = """\
[[turn]]
match = { user = "shopping list" }
answer = { calls = [{ name = "file_write", arguments = { path = "shopping.txt", content = "bread\\n" } }] }

[[turn]]
match = { answered = ["file_write"] }
answer = "The list is written."
"""
"""Another one, which writes a file."""
SERVER = """\
import json
import sys

TOOL = {"name": "search", "description": "Finds notes by words.", "inputSchema": {"type": "object", "properties": {}}}
TOOL["annotations"] = {"readOnlyHint": True}
FOUND = {"content": [{"type": "text", "text": "Kim: five percent from ten pieces on"}]}
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    results = {"initialize": INFO, "tools/list": {"tools": [TOOL]}, "tools/call": FOUND, "ping": {}}
    if "id" in asked and asked.get("method") in results:
        told = {"result": results[asked["method"]]}
    elif "id" in asked:
        told = {"error": {"code": -32601, "message": "there is no such method"}}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""
"""An MCP server of theirs."""
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_NORMAL = (
    (re.compile(r"\br[0-9a-f]{8}\b"), "r4f1c09ab"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-01-31 09:30"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"), "2026-01-31T09:30:00+00:00"),
    (re.compile(r"\d+\.\d MB"), "0.0 MB"),
    (re.compile(r"about [\d,]+ tokens in"), "about 1,000 tokens in"),
    (re.compile(r"answered in [\d.]+ s"), "answered in 0.10 s"),
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
            ["bash", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        parts.append("$ " + command.replace("\n", "\n> ") + "\n" + done.stdout.decode("utf-8", "replace"))
    return normal("".join(parts).replace(str(folder.parent), "/home/you"))


def rewritten(page: str, folder: Path) -> str:
    return _BLOCK.sub(lambda found: played(found[0], folder), page)


def stage(folder: Path) -> Path:
    """The workspace that the pages speak of, a scripted model beside it, and `pawl` where a shell finds it."""
    (folder / "bin").mkdir()
    (folder / "bin" / "pawl").symlink_to(SCRIPT)
    (folder / "answers.toml").write_text(ANSWERS)
    (folder / "shopping.toml").write_text(SHOPPING)
    (folder / "notes").mkdir()
    (folder / "notes" / "server.py").write_text(SERVER)
    shop = folder / "shop"
    shop.mkdir()
    for name, text in FILES.items():
        (shop / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=shop, check=True)
    return shop


def surroundings(folder: Path) -> dict[str, str]:
    """The variables of somebody who lives in the folder."""
    return {
        "HOME": str(folder),
        "PATH": f"{folder}/bin:{os.defpath}",
        "PAWL_STATE": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / ".config"),
    }


def keys() -> set[str]:
    """The variables that would give this person keys or servers."""
    return {name for one in builtin().values() for name in (*one.key_env, *one.url_env)} | {"PAWL_MODEL", "PAWL_CONFIG"}


def main() -> None:
    with tempfile.TemporaryDirectory() as room:
        shop = stage(Path(room))
        os.environ.update(surroundings(Path(room)))  # noqa: TID251
        for key in keys():
            os.environ.pop(key, None)  # noqa: TID251
        for name in sys.argv[1:]:
            Path(name).write_text(rewritten(Path(name).read_text(), shop))


if __name__ == "__main__":
    main()
