"""Measures verification on real past fixes: are the tests of the upstream fix among those that Pawl would choose?

    python benchmarks/projects.py --repos DIR [--repo owner/name] [--fixes N] [--seconds S] [--out results.json]
    python benchmarks/projects.py --repos DIR --verify [--bin FOLDER] [--repo owner/name] [--fixes N]
    python benchmarks/projects.py --verify --repo pawl/web [--nested]

DIR holds a git repository `owner+name/repo` for each repository of projects.toml. A fix is a commit that changes one to
four files of code and a file of tests that stood there before; N of the last 12 N are taken, evenly. The tree before
the fix is laid out in a temporary folder, its index is brought up to date as in daily work, and commits are read as of
that moment, never later ones. Nothing of the repositories is run.

A fix counts as found within k when a file of tests that it changes is among the first k; as chosen when one is among
those that fit S seconds of tests, and as whole when all of them are. Weights were fitted on the fixes whose SHA-1 is
even ("fitted"); the others are "held back".

With --verify the newest fixes are played whose tests fail without them and pass with them in this environment (others
are counted): the commit before the fix with its tests, and a scripted model that writes the fixed files, or a wrong
variant of them. That is the first of up to 12 attempts (half of the fix, one of its lines turned around or left out)
with which tests of the fix still fail and none of those as they were fails anew; where there is none, the files as they
were with an assignment more ("variant" in the results says which). Both are played again with the tests as they were,
which pass either way, or fail where the fix changed what they expect. The verdict is right when the fix is verified, or
unverified where nothing proves it, or failed where it breaks tests as they were, and the variant is never verified.
FOLDER holds the `python3` with the dependencies, or the program that installs them in the clone (yarn).

`pawl/web` is the page of this repository as it is committed: a bug is put into it and the test that sees it taken out,
and that is the commit before the fix. With --nested the workspace is the whole repository, the page a folder of it.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from locate import Log, Mirror, half_of
from wrong_fixes import attempts

from pawl.code.languages import is_test, language_of
from pawl.code.librarian import CodeLibrarian
from pawl.code.reach import SECONDS_PER_TEST, ChangedLines, within
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles

CUTS = (1, 5, 10, 20, 50)
MOST_CODE = 4
SECONDS_OF_TESTS = 300
TRIED = 6
"""Fixes that are tried for each that can be played."""
SPREAD = 12
"""Fixes are taken evenly from so many times their number."""


@dataclass(frozen=True)
class Fix:
    repo: str
    commit: str
    base: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    within: str = ""
    """The folder of the workspace in which the tests run."""


def fixes(project: dict, repository: Path, most: int, spread: int = SPREAD) -> list[Fix]:
    """The oldest first."""
    words = (
        "log",
        "--no-merges",
        "--no-renames",
        "-n20000",
        "--name-status",
        "--format=%x01%H %P%x02%s",
        project["at"],
    )
    log = subprocess.run(
        ["git", "-C", str(repository), *words], capture_output=True, text=True, check=True, errors="replace"
    )
    found = list(_fixes_in(project, log.stdout, most * spread))
    step = max(1, len(found) / most)
    return [found[int(number * step)] for number in range(min(most, len(found)))][::-1]


def _fixes_in(project: dict, log: str, most: int) -> Iterator[Fix]:
    subject, wanted = re.compile(project["subject"]), re.compile(project.get("tests", r"test[^/]*\.py$"))
    for part in log.split("\x01")[1:]:
        head, _, names = part.partition("\n")
        commits, _, said = head.partition("\x02")
        commit, *parents = commits.split()
        changed = [line.split("\t", 1) for line in names.splitlines() if "\t" in line]
        edited = [path for status, path in changed if status == "M"]
        code = tuple(path for path in edited if not is_test(path) and language_of(path) is not None)
        tests = tuple(path for path in edited if is_test(path) and wanted.search(path))
        if subject.search(said) and len(parents) == 1 and 0 < len(code) <= MOST_CODE and 0 < len(tests) <= MOST_CODE:
            yield Fix(project["repo"], commit, parents[0], code, tests)
            most -= 1
            if not most:
                return


def made(project: dict, repository: Path, *, nested: bool) -> list[Fix]:
    """A repository with a commit before and a commit of the fix for each bug of the project, which is ours."""
    within = project["folder"] if nested else ""
    repository.mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    words = ["git", "-C", str(Path(__file__).parents[1]), "archive", f"HEAD:{'' if nested else project['folder']}"]
    packed = subprocess.run(words, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(repository)], check=True, input=packed)
    subprocess.run([*git, "init", "-q"], check=True)

    def commit(written: dict[str, str]) -> str:
        for path, text in written.items():
            (repository / path).write_text(text, "utf-8")
        for words in (["add", "-A"], ["commit", "-q", "-m", "a"], ["rev-parse", "HEAD"]):
            done = subprocess.run([*git, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    commit({})
    found = []
    for bug in project["bugs"]:
        path, tests = (str(Path(within, bug[name])) for name in ("path", "tests"))
        fixed = {one: (repository / one).read_text("utf-8") for one in (path, tests)}
        start = fixed[tests].index(f'  it("{bug["test"]}')
        end = fixed[tests].index("\n  });\n", start) + len("\n  });\n")
        assert fixed[path].count(bug["right"]) == 1
        broken = {
            path: fixed[path].replace(bug["right"], bug["wrong"]),
            tests: fixed[tests][:start] + fixed[tests][end:],
        }
        base = commit(broken)
        found.append(Fix(project["repo"], commit(fixed), base, (path,), (tests,), within))
    return found


def texts(fix: Fix, mirror: Mirror) -> list[ChangedLines]:
    """What the fix changes beside tests."""
    return [
        ChangedLines.of(path, mirror.git("show", f"{fix.base}:{path}"), mirror.git("show", f"{fix.commit}:{path}"))
        for path in fix.code
    ]


def measured(fix: Fix, mirror: Mirror, index: Path, seconds: float) -> dict:
    mirror.show(fix.base)
    with Tree(mirror.folder) as tree:
        log = Log(mirror.repository, fix.base)
        librarian = CodeLibrarian(index, WorkspaceFiles(tree, preset("standard")), log)  # type: ignore[arg-type]
        librarian.refresh(seconds=1e9)
        librarian.take_in(log)  # type: ignore[arg-type]
        changes = texts(fix, mirror)
        started = time.perf_counter()
        reach = librarian.reached(changes)
        took = time.perf_counter() - started
        librarian.close()
    order = [one.path for one in reach.tests]
    ranks = sorted(order.index(path) + 1 for path in fix.tests if path in order)
    chosen = {one.path for one in within(reach.likely, seconds, lambda one: one.tests * SECONDS_PER_TEST)}
    return {
        "repo": fix.repo,
        "commit": fix.commit,
        "half": half_of(fix.commit),
        "rank": ranks[0] if ranks else 10_000,
        "chosen": bool(chosen.intersection(fix.tests)),
        "whole": bool(ranks) and chosen.issuperset(path for path in fix.tests if path in order),
        "files": len(order),
        "tests": sum(one.tests for one in reach.tests),
        "chosen_tests": sum(one.tests for one in reach.tests if one.path in chosen),
        "seconds": took,
        "code": fix.code,
        "wanted": fix.tests,
    }


def figures(group: list[dict]) -> dict[str, object]:
    share = {f"first {cut}": sum(one["rank"] <= cut for one in group) for cut in CUTS}
    counted = {**share, "chosen": sum(one["chosen"] for one in group), "whole": sum(one["whole"] for one in group)}
    return {
        "n": len(group),
        **{name: f"{100 * count / len(group):.0f} %" for name, count in counted.items()},
        "test files": round(statistics.mean(one["files"] for one in group)),
        "tests": round(statistics.mean(one["tests"] for one in group)),
        "chosen tests": round(statistics.mean(one["chosen_tests"] for one in group)),
        "ranking s": round(statistics.median(one["seconds"] for one in group), 3),
    }


def table(results: list[dict]) -> str:
    groups = {"all": results}
    groups |= {half: [one for one in results if one["half"] == half] for half in ("fitted", "held back")}
    groups |= {
        repo: [one for one in results if one["repo"] == repo] for repo in sorted({one["repo"] for one in results})
    }
    rows = {name: figures(group) for name, group in groups.items() if group}
    columns = list(next(iter(rows.values())))
    lines = ["| fixes | " + " | ".join(columns) + " |", "|" + " --- |" * (1 + len(columns))]
    lines += [f"| {name} | " + " | ".join(str(row[column]) for column in columns) + " |" for name, row in rows.items()]
    return "\n".join(lines)


SETTINGS = """\
review = "off"
[models]
default = "here/m"
[providers.here]
wire = "openai"
base_url = "http://127.0.0.1:{port}/v1"
local = true
[verify]
budget = {budget}
"""


def played(fix: Fix, project: dict, repository: Path, top: Path, options: argparse.Namespace) -> dict | None:
    """The fix and its wrong variant, with its tests and without, each in a clean clone; None where it cannot be."""
    lay = partial(_laid, fix, project, repository, top, options.bin)
    folder = lay(with_tests=True)
    before = _failing(folder, fix, project, options.bin)
    for path, text in _texts(fix, folder)["fix"].items():
        (folder / path).write_text(text, "utf-8")
    after = _failing(folder, fix, project, options.bin)
    breaks = (
        _breaks(lay(with_tests=False), fix, project, options) if "fix, old tests" in (options.play or RIGHT) else False
    )
    turned = [] if before is None or after is None else [test for test in before if test not in after]
    if not turned:
        return None
    texts, kind = _texts(fix, folder), "fix"
    if any(name.startswith("wrong") for name in options.play or RIGHT):
        texts["wrong"], kind = _wrong(fix, project, lay, texts, turned, options)
    ends = {}
    for name in options.play or RIGHT:
        variant, with_tests = name.partition(",")[0], "old" not in name
        folder = lay(with_tests=with_tests)
        calls: list[dict] = []
        for path, text in texts[variant].items():
            calls.append({"name": "file_read", "arguments": {"path": path}})
            calls.append({"name": "file_write", "arguments": {"path": path, "content": text}})
        request = f"fix {', '.join(turned[:MOST_NAMED])}" if with_tests else f"fix the bug in {fix.code[0]}"
        ends[name] = _done(folder, calls, request, options) | {"request": request}
        right = (*RIGHT[name], *(("failed",) if name == "fix, old tests" and breaks else ()))
        ends[name]["right"] = ends[name]["verdict"] in right
    return {"repo": fix.repo, "commit": fix.commit, "variant": kind, **ends}


def _wrong(
    fix: Fix, project: dict, lay: Callable[..., Path], texts: dict, turned: list[str], options: argparse.Namespace
) -> tuple[dict[str, str], str]:
    """A wrong variant that the tests as they were do not tell from the fix, and what it is."""
    was, fixed = texts["was"], texts["fix"]
    each = ((path, one) for path in fixed for one in attempts(path, was[path], fixed[path]))
    known = set(_failing(lay(with_tests=False), fix, project, options.bin) or [])
    for path, text in itertools.islice(each, MOST_ATTEMPTS):
        wrong = fixed | {path: text}
        failing = []
        for with_tests in (True, False):
            folder = lay(with_tests=with_tests)
            for name, content in wrong.items():
                (folder / name).write_text(content, "utf-8")
            failing.append(_failing(folder, fix, project, options.bin))
        if (
            failing[0]
            and not set(turned).isdisjoint(failing[0])
            and failing[1] is not None
            and set(failing[1]) <= known
        ):
            lines = difflib.unified_diff(fixed[path].splitlines(), text.splitlines(), path, path, lineterm="", n=0)
            return wrong, "\n".join(lines)
    more = {
        path: "\n_LOOKED_AT = True\n" if path.endswith(".py") else "\nexport const LOOKED_AT = true;\n" for path in was
    }
    return {path: text + more[path] for path, text in was.items()}, "as it was"


MOST_ATTEMPTS = 12


def _breaks(folder: Path, fix: Fix, project: dict, options: argparse.Namespace) -> bool:
    """Whether tests as they were fail with the fix, which then changed what they expect."""
    before = _failing(folder, fix, project, options.bin) or []
    for path, text in _texts(fix, folder)["fix"].items():
        (folder / path).write_text(text, "utf-8")
    return not set(_failing(folder, fix, project, options.bin) or []) <= set(before)


MOST_NAMED = 3
RIGHT = {
    "fix": ("verified", "unverified"),
    "wrong": ("failed", "unverified"),
    "fix, old tests": ("verified", "unverified"),
    "wrong, old tests": ("failed", "unverified", "nothing to prove"),
}


def _laid(fix: Fix, project: dict, repository: Path, top: Path, bin_folder: str, *, with_tests: bool) -> Path:
    """The commit before the fix, in the one clone of the repository; what is indexed stays, what ran is forgotten."""
    folder = top / f"{fix.repo.replace('/', '+')}-play" / "work"
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    commands = [[*git, "checkout", "-qf", fix.base], [*git, "clean", "-qfdx", "-e", "node_modules"]]
    if not folder.exists():
        # With objects of its own: those that a clone shares with another repository are not shown to git.
        subprocess.run(["git", "clone", "-q", "--local", "--no-checkout", str(repository), str(folder)], check=True)
        for absent in project.get("absent", {}):
            words = [*git, "hash-object", "-w", "--stdin"]
            empty = subprocess.run(words, check=True, capture_output=True, text=True, input="").stdout.strip()
            subprocess.run([*git, "update-ref", f"refs/replace/{absent}", empty], check=True)
        if "install" in project:
            place = str(folder / fix.within)
            commands.append(["env", "-C", place, f"PATH={bin_folder}:{os.environ['PATH']}", *project["install"]])
    for path in project.get("absent", {}).values():
        commands.append([*git, "rm", "-qf", "--ignore-unmatch", "--", path])
    if with_tests:
        commands.append([*git, "checkout", "-q", fix.commit, "--", *fix.tests])
    commands.append([*git, "commit", "-q", "--allow-empty", "-m", "tests"])
    for words in commands:
        subprocess.run(words, check=True, capture_output=True)
    for name in ("suites", "verdicts", "runners"):
        shutil.rmtree(folder.parent / "state" / name, ignore_errors=True)
    return folder


def _texts(fix: Fix, folder: Path) -> dict[str, dict[str, str]]:
    """The files of the fix as they were and as they are fixed."""
    found: dict[str, dict[str, str]] = {"was": {}, "fix": {}}
    for path in fix.code:
        for name, commit in (("was", fix.base), ("fix", fix.commit)):
            words = ["git", "-C", str(folder), "show", f"{commit}:{path}"]
            found[name][path] = subprocess.run(words, capture_output=True, check=True).stdout.decode()
    return found


_FAILED = re.compile(
    r"^(?:(?:FAILED|ERROR|FAIL:|ERROR:) (?!\()(.+?)(?:\[.*|\s-\s.*)?|\s*FAIL\s+(\S+ > .+)|  ● (.+ › .+))$", re.MULTILINE
)


def _failing(folder: Path, fix: Fix, project: dict, bin_folder: str) -> list[str] | None:
    """The tests of the fix that fail, as their runner calls them; None where they take too long."""
    command = project.get("test", "python3 -m pytest -q -rfE -p no:cacheprovider").split()
    files = [str(Path(path).relative_to(fix.within)) for path in fix.tests if not path.endswith(".snap")]
    tests = [path.removesuffix(".py").replace("/", ".").removeprefix("tests.") for path in files]
    places = [str(place) for place in (folder / "src", folder) if place.is_dir()]
    environment = {"PATH": os.pathsep.join((bin_folder, os.environ["PATH"])), "PYTHONPATH": os.pathsep.join(places)}
    environment["NO_COLOR"] = "1"
    words = [*command, *(tests if "runtests.py" in project.get("test", "") else files)]
    runner = subprocess.Popen(
        words,
        cwd=folder / fix.within,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = runner.communicate(timeout=SECONDS_OF_TESTS)
    except subprocess.TimeoutExpired:
        os.killpg(runner.pid, signal.SIGKILL)
        runner.wait()
        return None
    found = _FAILED.findall(said)
    return list(dict.fromkeys("".join(names) for names in found))


def _done(folder: Path, calls: list[dict], request: str, options: argparse.Namespace) -> dict:
    top = folder.parent
    (top / "calls.json").write_text(json.dumps(calls))
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "model_server.py"), str(top / "calls.json")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    (top / "config.toml").write_text(SETTINGS.format(port=server.stdout.readline().strip(), budget=options.seconds))
    environment = {
        "PATH": os.pathsep.join(filter(None, (options.bin, os.environ["PATH"]))), "HOME": str(top), "LANG": "C.UTF-8",
        "PAWL_STATE": str(top / "state"), "PAWL_CONFIG": str(top / "config.toml"),
    }  # fmt: skip
    words = [sys.executable, "-m", "pawl", "do", request, "--approve", "never", "--seconds", "600", "--json"]
    started = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    ended = time.monotonic()
    server.stdin.close()
    seen = json.loads(server.stdout.read())
    server.wait()
    report = next(
        (json.loads(line) for line in reversed(done.stdout.decode().splitlines()) if line.startswith("{")), {}
    )
    return {
        "code": done.returncode,
        "verdict": report.get("verdict", ""),
        "notes": report.get("notes", []),
        "first_request_s": round(seen["arrivals"][0] - started, 2) if seen["arrivals"] else None,
        # From the answer that ends the work; the delivery check may ask once more.
        "verdict_s": round(ended - seen["answers"][len(calls)], 2) if len(seen["answers"]) > len(calls) else None,
        "requests": len(seen["answers"]),
        "sent_bytes": sum(seen["sizes"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, default=Path(), help="the folder of the mirrors")
    parser.add_argument("--repo", action="append", help="only this repository; may be given again")
    parser.add_argument("--fixes", type=int, default=20, help="of each repository")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests that are chosen")
    parser.add_argument("--out", type=Path, help="write every result as JSON")
    parser.add_argument("--verify", action="store_true", help="play each fix and a wrong variant of it")
    parser.add_argument("--bin", default="", help="with --verify: the folder of the python3 that has the dependencies")
    parser.add_argument("--play", action="append", choices=RIGHT, help="with --verify: only this; may be given again")
    parser.add_argument("--commit", action="append", help="with --verify: only this fix; may be given again")
    parser.add_argument("--nested", action="store_true", help="with pawl/web: the workspace is the whole repository")
    options = parser.parse_args()
    projects = tomllib.loads((Path(__file__).parent / "projects.toml").read_text("utf-8"))["project"]
    results = []
    with tempfile.TemporaryDirectory(prefix="pawl-projects-") as work:
        for project in projects:
            flat = project["repo"].replace("/", "+")
            if project["repo"] not in options.repo if options.repo else "bugs" in project:
                continue
            mirror = Mirror((Path(work) if "bugs" in project else options.repos) / flat / "repo", Path(work) / flat)
            if options.verify:
                results += verified(project, mirror.repository, Path(work), options)
                continue
            for fix in fixes(project, mirror.repository, options.fixes):
                results.append(measured(fix, mirror, Path(work) / f"{flat}.db", options.seconds))
                print(f"{fix.repo} {fix.commit[:10]} rank {results[-1]['rank']}", file=sys.stderr)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(told(results) if options.verify else table(results))


def verified(project: dict, repository: Path, top: Path, options: argparse.Namespace) -> list[dict]:
    results: list[dict] = []
    if "bugs" in project:
        found = made(project, repository, nested=options.nested)
    else:
        found = fixes(project, repository, options.fixes * TRIED, 1)[::-1]
    if options.commit:
        found = [fix for fix in found if fix.commit.startswith(tuple(options.commit))]
    for tried, fix in enumerate(found):
        if len(results) == options.fixes:
            print(f"{fix.repo}: {tried - len(results)} of {tried} cannot be played here", file=sys.stderr)
            break
        one = played(fix, project, repository, top, options)
        if one is not None:
            results.append(one)
            print(json.dumps(one), file=sys.stderr)
    return results


def told(results: list[dict]) -> str:
    plays = [name for name in results[0] if name not in ("repo", "commit", "variant")] if results else []
    right = {name: dict(Counter(one[name]["verdict"] or "none" for one in results)) for name in plays}
    times = (
        {}
        if not results
        else {
            name: round(statistics.median(one["fix"][name] or 0.0 for one in results), 2)
            for name in ("first_request_s", "verdict_s")
        }
    )
    as_it_was = sum(one["variant"] == "as it was" for one in results)
    return json.dumps({"n": len(results), "wrong variants that are no attempt": as_it_was, **right, **times})


if __name__ == "__main__":
    main()
