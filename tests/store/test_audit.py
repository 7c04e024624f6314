"""The audit of ladders: what is written is read back, written once, and kept apart from the state file."""

from __future__ import annotations

import sqlite3
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from pawl.core.errors import StoreBusy, StoreCorrupt, StoreTooNew
from pawl.core.tiers import Attempt, AttemptEnd, Escalation, Iteration, Tier, TierMode
from pawl.store.audit import FILE_NAME, Audit

LADDER = Escalation(tiers=(Tier(name="reflex", mode=TierMode.REFLEX), Tier(name="simple", mode=TierMode.SIMPLE)))
ATTEMPT = Attempt(
    at=Iteration(tier=1, number=2),
    mode=TierMode.SIMPLE,
    model="openai/x",
    end=AttemptEnd.REFUSED,
    paths=("a.py",),
    failing=("t::a", "t::b"),
    refused=("tests: 2 failed",),
    verdicts=(("tests", "fail", "2 failed"),),
    cost=Decimal("0.0100"),
    tokens=120,
    seconds=1.5,
)


@pytest.mark.spec("E5")
def test_runs_tiers_and_attempts_are_read_back_and_written_once(tmp_path: Path):
    with Audit.open(tmp_path, clock=lambda: 1000.0) as audit:
        audit.begun("/w", "r1", "mend it", LADDER, 2)
        audit.tried("r1", 1, ATTEMPT)
        audit.tried("r1", 1, ATTEMPT)
        audit.left("r1", 0, "it found nothing")
        audit.ended("r1", "exhausted", "5 iterations", None)
    with Audit.open(tmp_path) as audit:
        (run,) = audit.runs("/w")
        assert (run["run"], run["objective"], run["failing"], run["why"]) == ("r1", "mend it", 2, "exhausted")
        assert audit.runs("/other") == []
        assert [(one["name"], one["left_because"]) for one in audit.tiers("r1")] == [
            ("reflex", "it found nothing"), ("simple", ""),
        ]  # fmt: skip
        (one,) = audit.attempts("r1")
        assert (one["failing"], one["cost"], one["paths"], one["ended"]) == (2, Decimal("0.0100"), ["a.py"], "refused")
        assert one["verdicts"] == [["tests", "fail", "2 failed"]]
        audit.begun("/w", "r1", "mend it", LADDER, 2)
        assert audit.runs("/w")[0]["ended"] is None, "a run that is resumed goes on"
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.spec("E5")
def test_secrets_do_not_reach_the_audit(tmp_path: Path):
    with Audit.open(tmp_path) as audit:
        secret = "ghp_" + "a1B2" * 9
        audit.begun("/w", "r1", f"use {secret}", LADDER, 0)
        assert secret not in str(audit.runs("/w")[0]["objective"])


@pytest.mark.spec("E5")
def test_a_locked_a_damaged_and_a_newer_file_are_errors_of_the_store(tmp_path: Path):
    with Audit.open(tmp_path, busy_seconds=0.01) as audit:
        audit.begun("/w", "r1", "", LADDER, 0)
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            audit.tried("r1", 1, ATTEMPT)
        other.execute("ROLLBACK")
        other.execute("PRAGMA user_version = 99")
        other.close()
    with pytest.raises(StoreTooNew):
        Audit.open(tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreCorrupt):
        Audit.open(tmp_path)
