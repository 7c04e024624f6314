"""`pawl doctor` and `pawl gc`."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.core.errors import ConfigError, SandboxUnavailable
from pawl.core.execution import Confinement
from pawl.settings.trust import TrustStatus, folder_trust
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command
from pawl.ui.screen.screen import counted

if TYPE_CHECKING:
    from pawl.checks.known_commands import TestCommand
    from pawl.workspace.benches import Examination
    from pawl.workspace.project import Project


def doctor_words(parser: ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="also check all stored contents (reads the whole store)")


def gc_words(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=int, metavar="N", help="keep what is younger (default: the setting retention_days, 30)"
    )
    kept = "keep the last N changes of each file (default: the setting backups, 5)"
    parser.add_argument("--backups", type=int, metavar="N", help=kept)


DECLARED = {
    "doctor": Command(words=doctor_words, example="pawl doctor", reads=True, rescue=True),
    "gc": Command(words=gc_words, example="pawl gc --days 7", reads=True, rescue=True),
}
_WORDS = {
    Confinement.NAMESPACES: "full: commands see the bench and system folders only",
    Confinement.LANDLOCK: "weaker: commands are held by Landlock on a copied bench",
    Confinement.NONE: "none: Pawl refuses to run commands here",
}
_MOST_NUMBER = 1_000_000


def doctor(shop: Project, call: Call) -> int:
    from pawl.ui.cli.mistakes import every_mistake
    from pawl.workspace.benches import examine
    from pawl.workspace.environments import found_environment

    report = examine(shop, thorough=call.options.verify)
    wrong = every_mistake()
    told = (f"{str(shop.config.file)!r}: {'; '.join(wrong)}",) if wrong else ()
    # Hooks that cannot be read are among the mistakes of the settings file.
    left = (one for one in report.problems if not (wrong and str(shop.config.file) in one))
    report = replace(report, problems=(*told, *left))
    trust = folder_trust(shop.config, shop.workspace)
    found, tests = found_environment(shop.config, shop.workspace), _test_commands(shop)
    code = _health(report)
    if call.options.json:
        return call.emit(
            {
                "ok": code == 0,
                **picked(report.protection, "confinement overlay"),
                "probes": report.protection.probes,
                "workspace": shop.workspace,
                "state": str(shop.store.path),
                **picked(report, "state_bytes benches"),
                "guardrails": shop.guardrails.name,
                "settings": str(shop.config.file),
                "trust": trust.standing,
                **picked(report, "hooks problems"),
                "environment": {**found.found, "python_folder": found.python},
                "test_commands": [picked(one, "words variables source tests") for one in tests],
            },
            code,
        )
    _tell(shop, call, report)
    for language, whose in sorted(found.found.items()):
        call.out.say(f"{language:<12}{whose} environment" + (f" in {found.python}" if language == "python" else ""))
    for one in tests[:1]:
        proved = f"ran {counted(one.tests, 'test')} here" if one.tests else "not tried yet"
        call.out.say(f"tests       {one.shown} ({'; '.join(filter(None, (one.source, proved)))})")
    if trust.standing is TrustStatus.LAPSED:
        call.out.say(f"  ! the trust in this folder lapsed: {', '.join(trust.changed)} changed since", "yellow")
        call.out.hint("      its configuration is ignored; look at the files, then run: pawl trust")
    return code


def _test_commands(shop: Project) -> tuple[TestCommand, ...]:
    """The one that is known to run the tests, then those that would be tried."""
    from pawl.checks.known_commands import known_commands
    from pawl.checks.test_commands import test_commands

    known = known_commands(shop.config).load(shop.workspace)
    with suppress(ConfigError):
        others = (one for one in test_commands(shop) if known is None or one.given != known.given)
        return (*((known,) if known else ()), *others)
    return ()


def gc(shop: Project, call: Call) -> int:
    from pawl.workspace.benches import collect

    days = call.options.days
    if days is None and shop.config.mistaken:
        call.aside.say(
            "! nothing old is dropped, because the settings may keep it longer; --days N drops what is older"
        )
        days = _MOST_NUMBER
    cleaned = collect(shop, days=_bounded(days), backups=_bounded(call.options.backups))
    if call.options.json:
        return call.emit(cleaned)
    call.out.say(
        f"dropped the contents of {counted(cleaned.entries, 'old entry', 'old entries')}, "
        f"freed {cleaned.bytes_freed / 1e6:.1f} MB"
    )
    if cleaned.benches:
        call.out.say(f"removed {counted(cleaned.benches, 'abandoned bench', 'abandoned benches')}")
    call.out.say(f"kept what is younger than {cleaned.days} days, and the last {cleaned.backups} changes of each file")
    return 0


def _health(report: Examination) -> int:
    if report.protection.confinement is Confinement.NONE:
        return SandboxUnavailable.exit_code
    return 1 if report.problems else 0


def _tell(shop: Project, call: Call, report: Examination) -> None:
    out = call.out
    weak = report.protection.confinement is not Confinement.NAMESPACES
    out.say(f"protection  {_WORDS[report.protection.confinement]}", "bold yellow" if weak else "bold green")
    remedies: list[str] = []
    for probe in report.protection.probes:
        out.say(f"  {'✓' if probe.works else '✗'} {probe.name}: {probe.detail}", "" if probe.works else "yellow")
        if not probe.works and probe.remedy and probe.remedy not in remedies:
            out.say(f"      {probe.remedy}")
            remedies.append(probe.remedy)
    benches = f", {counted(report.benches, 'open bench', 'open benches')}" if report.benches else ""
    out.say(f"workspace   {shop.workspace}")
    out.say(f"state       {shop.store.path} ({report.state_bytes / 1e6:.1f} MB{benches})")
    out.say(f"settings    {shop.config.file}{'' if shop.config.file.exists() else ' (not there: defaults)'}")
    out.say(f"guardrails  {shop.guardrails.name}")
    if report.hooks:
        host = [hook for hook in report.hooks if hook.host]
        out.say(f"hooks       {len(report.hooks) - len(host)} in the sandbox, {len(host)} on this machine")
        for hook in host:
            out.say(
                f"  ! {hook.event}: {hook.command!r} runs outside of the sandbox, as {hook.source!r} says", "yellow"
            )
            if hook.problem:
                out.say(f"      not started: {hook.problem}")
    for problem in report.problems:
        out.say(f"  ! {problem}", "bold red")
    if call.options.verify and not report.problems:
        out.say("contents    every stored content is intact")


def _bounded(number: int | None) -> int | None:
    return None if number is None else min(number, _MOST_NUMBER)
