"""Executes the waves of a specification and kills itself just before the given write to the store becomes durable.

python -m scenarios.killed_waves WORKSPACE SCRIPT N
"""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.dying import dying_at

from pawl.agent.specification.spec_folder import found_spec
from pawl.agent.specification.wave_executor import ExecutionWish, WaveExecutor, order_of
from pawl.settings.config import load
from pawl.workspace.project import Project


def main(workspace: str, script: str, last: int) -> None:
    with Project.open(load(), Path(workspace)) as shop, dying_at(last):
        wish = ExecutionWish(order=order_of(model=f"scripted:{script}"))
        WaveExecutor(spec=found_spec(shop), wish=wish).execute()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
