"""Runs every command of Pawl on hostile workspaces, each in a process that is forked off one with all modules loaded.

scripts/hostile --count 1000 --seed 7 --user ordinary     all that must not happen is told, with seed and case
scripts/hostile --seed 7 --only 31 --keep                 one case again, its folder kept to be looked at
scripts/hostile --scenarios                               the short stories of old defects and of red teams
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import users  # noqa: E402
from hostile import commands, ingredients, redteam, scenarios  # noqa: E402
from hostile.case import COMPUTED, PATH, SECONDS, TELL, WAITS, Case, a_case, prepare  # noqa: E402
from hostile.defects import DEFECTS  # noqa: E402

STORIES = {**scenarios.STORIES, **redteam.STORIES}
MOST_HANGS = 3
"""After so many hangs a workspace has shown what it does."""


def play(case: Case, wanted: str = "", only: str = "", part: slice = slice(None)) -> list[str]:
    """Lays a workspace and runs every command on it; what was laid."""
    site = case.site
    root, taken = ingredients.lay(site, wanted)
    case.cwd = commands.standing(site, root)
    case.gone, case.alone = root == "gone", True
    commands.configure(site, case.seconds)
    site.marker.unlink(missing_ok=True)  # what laying it ran
    if site.chance.random() < 0.5:
        case.extra["PATH"] = f"{site.workspace}/bin:{PATH}"
    for words, stdin in list(commands.calls(site, case.seconds))[part]:
        if sum("hung" in problem for problem in case.problems) < MOST_HANGS and only in ("", words[0]):
            case.call(*words, stdin=stdin, keeps=words[:2] == ("dev", "start"))
    return [f"root: {root}", *taken]


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs every command on random hostile workspaces.")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--within", type=float, default=math.inf, help="begin no workspace after so many seconds")
    parser.add_argument("--command", default="", help="this command alone")
    parser.add_argument("--each-class", action="store_true", help="one workspace of each class of ingredients")
    parser.add_argument("--half", type=int, choices=[0, 1], help="every other workspace alone")
    parser.add_argument("--parts", type=int, default=1, help="one part of so many of the commands, another each time")
    parser.add_argument("--scenarios", nargs="*", metavar="NAME", help="short stories instead of random workspaces")
    parser.add_argument("--defect", choices=sorted(DEFECTS), help="put this old defect back")
    parser.add_argument("--defects", action="store_true", help="put each old defect back and play its stories")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--tell", action="store_true", help="show all that commands say")
    parser.add_argument("--user", choices=users.NAMES)
    options = parser.parse_args()
    if options.user == "ordinary" and os.geteuid() == 0:
        return _as_ordinary(sys.argv[1:])
    prepare()
    TELL[0] = options.tell
    if options.defects:
        rows = [(defect, name) for defect, row in DEFECTS.items() for name in row.noticed]
    else:
        rows = [(options.defect, name) for name in options.scenarios or (STORIES if options.scenarios == [] else ())]
    found = _stories(rows, keep=options.keep) if rows else _workspaces(options)
    return bool(found)


def _workspaces(options: argparse.Namespace) -> int:
    wanted = list(ingredients.CLASSES) if options.each_class else [""] * options.count
    cases = (
        list(enumerate(wanted))
        if options.only is None
        else [(options.only, wanted[options.only] if options.each_class else "")]
    )
    cases = cases[options.half :: 2] if options.half is not None else cases
    cases = [case for case in cases if case[0] >= options.first]
    print(f"seed {options.seed}, {len(cases)} workspaces, user {os.getuid()}", flush=True)
    started = time.monotonic()
    found = played = 0
    for number, kind in cases:
        if time.monotonic() > started + options.within:
            print(f"the next one would be --first {number}")
            break
        played += 1
        problems = _workspace(options, number, kind)
        if problems and all("hung" in problem for problem in problems):  # it may have been the machine: once more
            problems = _workspace(options, number, kind)
        found += bool(problems)
        if not (number + 1) % 25:
            longest = max(WAITS, default=(0.0,))[0]
            print(f"{number + 1} played, {found} with problems, waited for {longest:.1f} s at most", flush=True)
    for how, taken in (("computed", COMPUTED), ("took", SECONDS)):
        print(f"{how}: {', '.join(f'{name} {seconds:.1f} s' for name, seconds in taken.most_common(8))}")
    for own, whole, words in WAITS:
        print(f"waited for {own:.1f} s ({whole:.1f} s in all): pawl {words!a}")
    seconds, computed = time.monotonic() - started, sum(os.times()[:4])
    told = f"{found} of {played} workspaces with problems"
    print(f"{told}, {seconds:.1f} s ({computed:.1f} s computed), seed {options.seed}")
    return found


def _workspace(options: argparse.Namespace, number: int, kind: str) -> list[str]:
    with a_case(random.Random(f"{options.seed}:{number}"), keep=options.keep, defect=options.defect) as case:
        taken = play(case, kind, options.command, slice(number % options.parts, None, options.parts))
        for problem in case.problems:
            print(f"seed {options.seed} case {number}: {problem}", flush=True)
        if case.problems or options.keep:
            print(f"   in {case.site.folder} of {json.dumps(taken)}", flush=True)
        return case.problems


def _stories(rows: list[tuple[str | None, str]], *, keep: bool) -> int:
    """Each story as a line of JSON: its name, the defect that was put back, and what must not have happened."""
    found = 0
    for defect, name in rows:
        with a_case(random.Random(name), keep=keep, defect=defect) as case:
            STORIES[name](case)
            print(json.dumps([name, defect, case.problems]), flush=True)
            found += bool(case.problems)
    return found


def _as_ordinary(words: list[str]) -> int:
    """The same as another user, by an interpreter and a copy of the source that this user can read."""
    user = users.become("ordinary")
    path = os.pathsep.join((user.source, sysconfig.get_path("purelib")))
    called = user.words([user.python, "-B", __file__, *words])
    return subprocess.run(called, env=user.environment("/tmp", {"PYTHONPATH": path}), cwd="/", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
