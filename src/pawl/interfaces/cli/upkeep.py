"""`pawl doctor` and `pawl gc`."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pawl.app import upkeep
from pawl.app.workshop import Workshop
from pawl.core.execution import Confinement
from pawl.interfaces.cli.screen import emit, say

_WORDS = {
    Confinement.NAMESPACES: "full: commands see only the bench and system folders, no network, bounded resources",
    Confinement.LANDLOCK: "weaker: commands are held by Landlock on a copied bench",
    Confinement.NONE: "none: Pawl refuses to run commands here",
}


def doctor(shop: Workshop, options: argparse.Namespace) -> int:
    report = upkeep.examine(shop, thorough=options.verify)
    healthy = report.protection.confinement is not Confinement.NONE and not report.problems
    if options.json:
        emit(
            {
                "confinement": report.protection.confinement,
                "overlay": report.protection.overlay,
                "probes": [asdict(probe) for probe in report.protection.probes],
                "workspace": shop.workspace,
                "state": str(shop.store.path),
                "state_bytes": report.state_bytes,
                "problems": list(report.problems),
                "ok": healthy,
            }
        )
        return 0 if healthy else 1
    say(f"protection  {_WORDS[report.protection.confinement]}")
    for probe in report.protection.probes:
        say(f"  {'✓' if probe.works else '✗'} {probe.name}: {probe.detail}")
        if not probe.works and probe.remedy:
            say(f"      {probe.remedy}")
    say(f"workspace   {shop.workspace}")
    say(f"state       {shop.store.path} ({report.state_bytes / 1e6:.1f} MB, {report.benches} open benches)")
    say(f"guardrails  {shop.guardrails.name}")
    for problem in report.problems:
        say(f"  ! {problem}")
    return 0 if healthy else 1


def gc(shop: Workshop, options: argparse.Namespace) -> int:
    cleaned = upkeep.clean(shop, days=options.days, backups=options.backups)
    if options.json:
        emit(asdict(cleaned))
        return 0
    say(
        f"pruned {cleaned.entries} entries, freed {cleaned.bytes_freed / 1e6:.1f} MB, "
        f"removed {cleaned.benches} abandoned benches"
    )
    say(f"kept: everything younger than {cleaned.days} days, and the last {cleaned.backups} of each file")
    return 0
