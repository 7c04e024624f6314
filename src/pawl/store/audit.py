"""The audit of ladders: every run, tier and attempt with its cost and verdicts, in a database of its own.

It stands beside the state file, so that nothing that befalls it can hold up a run: whoever writes to it passes over
a `StoreError` with a warning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from pawl.core.redact import redacted
from pawl.core.tiers import Attempt, Escalation
from pawl.store.database import iso, readable
from pawl.store.side_file import SideFile

FILE_NAME = "audit.db"


class Audit(SideFile):
    name = "audit"

    def begun(self, workspace: str, run: str, objective: str, ladder: Escalation, failing: int) -> None:
        """A run begins to climb; one that is resumed is known."""
        with self._database.transaction():
            self._database.insert(
                "audited_run",
                conflict="(run) DO UPDATE SET ended = NULL, why = '', reason = ''",
                run=run,
                workspace=os.fsencode(workspace),
                began=iso(self._clock()),
                objective=readable(redacted(objective)),
                ladder=json.dumps(asdict(ladder), default=str),
                failing=failing,
            )
            for number, tier in enumerate(ladder.tiers):
                kept = {"run": run, "tier": number, "name": readable(tier.name), "mode": tier.mode}
                self._database.insert("audited_tier", conflict="(run, tier) DO NOTHING", **kept)

    def tried(self, run: str, number: int, attempt: Attempt) -> None:
        """The attempt of that number; written once."""
        self._database.insert(
            "audited_attempt",
            conflict="(run, number) DO NOTHING",
            run=run,
            number=number,
            time=iso(self._clock()),
            tier=attempt.at.tier,
            iteration=attempt.at.number,
            sample=attempt.sample,
            mode=attempt.mode,
            model=attempt.model,
            ended=attempt.end,
            failing=None if attempt.failing is None else len(attempt.failing),
            paths=json.dumps(attempt.paths),
            refused=json.dumps([readable(redacted(reason)) for reason in attempt.refused]),
            verdicts=json.dumps(attempt.verdicts),
            cost=None if attempt.cost is None else str(attempt.cost),
            tokens=attempt.tokens,
            seconds=attempt.seconds,
        )

    def left(self, run: str, tier: int, reason: str) -> None:
        """A tier was left for the next one."""
        self._database.run(
            "UPDATE audited_tier SET left_because = ? WHERE run = ? AND tier = ?",
            (readable(redacted(reason)), run, tier),
        )

    def ended(self, run: str, why: str, reason: str, entry: int | None = None) -> None:
        self._database.run(
            "UPDATE audited_run SET ended = ?, why = ?, reason = ?, entry = ? WHERE run = ?",
            (iso(self._clock()), why, readable(redacted(reason)), entry, run),
        )

    def runs(self, workspace: str) -> Sequence[Mapping[str, object]]:
        """Newest first."""
        found = self._database.records(
            "SELECT run, began, objective, ladder AS escalation, failing, ended, why, reason, entry FROM audited_run"
            " WHERE workspace = ? ORDER BY began DESC, run",
            (os.fsencode(workspace),),
        )
        return [{**one, "escalation": json.loads(one["escalation"])} for one in found]

    def tiers(self, run: str) -> Sequence[Mapping[str, object]]:
        sql = "SELECT tier, name, mode, left_because FROM audited_tier WHERE run = ? ORDER BY tier"
        return self._database.records(sql, (run,))

    def attempts(self, run: str) -> Sequence[Mapping[str, object]]:
        """In the order in which they were made."""
        found = self._database.records(
            "SELECT number, time, tier, iteration, sample, mode, model, ended, failing, paths, refused, verdicts, cost,"
            " tokens, seconds FROM audited_attempt WHERE run = ? ORDER BY number",
            (run,),
        )
        return [_attempt(one) for one in found]


def _attempt(found: Mapping[str, Any]) -> Mapping[str, object]:
    lists = {name: json.loads(found[name]) for name in ("paths", "refused", "verdicts")}
    return {**found, **lists, "cost": None if found["cost"] is None else Decimal(found["cost"])}
