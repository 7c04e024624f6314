"""Random shell scripts that maltreat a folder: delete, rename, chmod, rewrite, link, replace folders by files."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from pathlib import Path

NAMES = (
    "a.txt", "b.py", "c d.md", "-dash", "ünï.txt", "quote'd", 'dou"ble', "back\\slash", "tab\tname", "new\nline",
    "$dollar", "*star", "[x]", "#hash", "~tilde", "UPPER", "upper", ".hidden", "x" * 200, "emoji🙂",
)  # fmt: skip
FOLDERS = ("", "src/", "src/deep/", "docs/", "data/one/two/three/", "sp ace/", "ünï/")
FILE_MODES = ("644", "755", "600", "444", "400", "640", "777")
FOLDER_MODES = ("755", "700", "750", "555", "775")


def fill(root: Path, seed: int) -> None:
    """A folder with some forty files, empty folders and links, different for each seed."""
    dice = random.Random(seed)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number in range(40):
        path = root / dice.choice(FOLDERS) / f"{number}-{dice.choice(NAMES)[:60]}"
        kind = dice.random()
        if kind < 0.1:
            path.symlink_to(dice.choice(("README", "src", "../docs", "nowhere")))
        elif kind < 0.3:
            path.write_bytes(dice.randbytes(dice.randrange(2000)))
        else:
            path.write_text("".join(f"line {line} of {number}\n" for line in range(dice.randrange(40))))
        if not path.is_symlink():
            path.chmod(int(dice.choice(FILE_MODES), 8))
    (root / "empty").mkdir()
    (root / "README").write_text("read me\n")


def script(seed: int, length: int) -> str:
    """A script of that many commands; what fails is passed over, as a person's would be."""
    dice = random.Random(seed * 7919 + 1)
    lines = ["set +e"]
    for _ in range(length):
        lines.append(f"{{ {dice.choice(COMMANDS)(dice)} ; }} 2>/dev/null")
    return "\n".join([*lines, "exit 0"])


def _some(dice: random.Random, kind: str) -> str:
    """A file or folder that is there when the command runs, or an empty word."""
    pick = dice.randrange(1, 30)
    return f'"$(find . -mindepth 1 -type {kind} -not -name "*\n*" | LC_ALL=C sort | sed -n {pick}p)"'


def _new(dice: random.Random) -> str:
    return shlex.quote("./" + dice.choice(FOLDERS) + dice.choice(NAMES) + str(dice.randrange(100)))


def _file(dice: random.Random) -> str:
    return _some(dice, "f")


def _folder(dice: random.Random) -> str:
    return _some(dice, "d")


COMMANDS: tuple[Callable[[random.Random], str], ...] = (
    lambda dice: f"rm -f {_file(dice)}",
    lambda dice: f"rm -rf {_folder(dice)}",
    lambda dice: f"mv {_file(dice)} {_new(dice)}",
    lambda dice: f"mv {_folder(dice)} {_new(dice)}",
    lambda dice: f"mv {_file(dice)} {_file(dice)}",
    lambda dice: f"chmod {dice.choice(FILE_MODES)} {_file(dice)}",
    lambda dice: f"chmod {dice.choice(FOLDER_MODES)} {_folder(dice)}",
    lambda dice: f"echo rewritten {dice.random()} > {_file(dice)}",
    lambda dice: f"echo appended >> {_file(dice)}",
    lambda dice: f"true > {_file(dice)}",
    lambda dice: f"truncate -s {dice.randrange(5000)} {_file(dice)}",
    lambda dice: f"sed -i s/line/LINE/ {_file(dice)}",
    lambda dice: f"touch {_new(dice)}",
    lambda dice: f"touch {_file(dice)}",
    lambda dice: f"mkdir -p {_new(dice)}/x/y",
    lambda dice: f"mkdir -p {_new(dice)} && rmdir {_folder(dice)}",
    lambda dice: f"head -c {dice.randrange(9000)} /dev/urandom > {_new(dice)}",
    lambda dice: f"cp -a {_folder(dice)} {_new(dice)}",
    lambda dice: f"ln -s {dice.choice(('README', 'src/deep', 'missing'))} {_new(dice)}",
    lambda dice: f"ln -sfn README {_file(dice)}",
    lambda dice: f"ln {_file(dice)} {_new(dice)}",
    lambda dice: f'f={_file(dice)}; rm -f "$f" && mkdir "$f" && echo in > "$f/side"',
    lambda dice: f'd={_folder(dice)}; rm -rf "$d" && echo file > "$d"',
    lambda dice: f'd={_folder(dice)}; rm -rf "$d" && ln -s README "$d"',
    lambda dice: f'd={_folder(dice)}; rm -rf "$d" && mkdir "$d" && echo again > "$d/fresh"',
    lambda dice: f"find . -name '{dice.randrange(10)}*' -type f -delete",
    lambda dice: "tar cf t.tar src && rm -rf src && tar xf t.tar && rm t.tar",
    lambda dice: f'for n in $(seq {dice.randrange(5, 60)}); do echo $n > "many-$n"; done',
    lambda dice: "find . -type l -delete",
    lambda dice: f"dd if=/dev/zero of={_new(dice)} bs=1k count=1 seek={dice.randrange(50)} status=none",
)
