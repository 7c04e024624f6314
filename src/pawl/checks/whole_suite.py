"""The whole suite after a change that a part of it verified: run in the background, its end kept with the entry."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from pawl.checks.settings import verify_settings
from pawl.checks.suite_record import suite_records
from pawl.checks.verdict import failing, runs_tests
from pawl.checks.verifier import Verifier
from pawl.checks.verify_report import BaselinePolicy, VerifyReport
from pawl.core.diagnostic import Status
from pawl.core.errors import PawlError
from pawl.settings.files import writer_lock
from pawl.workspace.project import Project

STARTED = "the whole suite runs in the background; pawl history shows how it ends"
_PATIENCE = 3600.0
_MOST_NAMED = 3


def begin_whole_suite(shop: Project, entry: int | None) -> str:
    """Start it for a promoted entry, where the settings ask for it and a part of it ran; what the user is told."""
    if entry is None or not verify_settings(shop.config).afterwards:
        return ""
    kept = shop.store.journal.evidence(entry)
    if not isinstance(kept, dict) or not any(one.get("part") for one in kept["checked"]["verdicts"]):
        return ""
    words = (sys.executable, "-P", "-m", "pawl", "-C", shop.workspace, "verify", "--entry", str(entry))
    nowhere = subprocess.DEVNULL
    subprocess.Popen(words, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True)
    return STARTED


def run_whole_suite(verifier: Verifier, entry: int) -> VerifyReport | None:
    """Run it and keep its end with the entry, one at a time in a workspace; None where a newer entry took its place."""
    shop = verifier.shop
    with writer_lock(shop.config.state / "locks", f"{shop.workspace} suite", seconds=_PATIENCE):
        if shop.entries()[0].id != entry:
            _keep(shop, entry, "not run: another change was promoted first")
            return None
        known = suite_records(shop.config).load(shop.workspace).failed
        try:
            report = verifier.verify(policy=BaselinePolicy.STORED)
        except PawlError as error:
            _keep(shop, entry, f"could not run: {error.message}")
            raise
        suites = [one for one in report.verdicts if runs_tests(one.step)]
        new = [test for test in failing(one for suite in suites for one in suite.findings) if test not in known]
        told = "; ".join(f"{one.standing}, {one.reason}" for one in suites)
        if any(one.standing is Status.FAIL for one in suites):
            told += f"; new: {', '.join(new[:_MOST_NAMED]) or 'none'}"
        _keep(shop, entry, told or "there is none")
        return report


def _keep(shop: Project, entry: int, told: str) -> None:
    kept = shop.store.journal.evidence(entry)
    if isinstance(kept, dict):
        with suppress(PawlError):
            shop.store.journal.keep_evidence(entry, {**kept, "whole_suite": told})
