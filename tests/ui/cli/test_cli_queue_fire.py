"""Workers that are killed, stopped and robbed of their server at random: each job ends once, nothing is promoted twice.

The same with 1,000 jobs and 200 hits is `benchmarks/job_queue.py` (figures in docs/commands/queue.md).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import postgres
import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks/job_queue.py"


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
@pytest.mark.parametrize("where", [(), ("--queue", "postgres", "--machines", "2")], ids=["state file", "two machines"])
def test_each_job_ends_once_and_the_trees_are_those_of_one_after_the_other(where: tuple[str, ...]):
    if where and (why := postgres.missing()):
        pytest.skip(why)
    words = ("--jobs", "24", "--workspaces", "4", "--workers", "3", "--kills", "8", *where)
    done = subprocess.run([sys.executable, BENCHMARK, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "wrong: 0" in done.stdout and "jobs 24, attempts" in done.stdout, done
    assert "hits {}" not in done.stdout
