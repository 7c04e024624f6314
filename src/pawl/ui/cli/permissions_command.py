"""`pawl permissions` and `pawl trust`: what an agent may do here, and whether this folder may have a say in it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.core.run import Mode
from pawl.settings import permissions as permitting
from pawl.settings.extensions import own_kinds
from pawl.settings.hook_settings import hook_commands
from pawl.settings.trust import (
    FOLDER,
    MCP_FILE,
    FolderTrust,
    ProjectFiles,
    TrustStatus,
    folder_trust,
    is_listed,
    project_settings,
    revoke,
    trusted_folders,
)
from pawl.settings.trust import trust as trust_folder
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command, mixed

if TYPE_CHECKING:
    from pawl.workspace.project import Project


def permissions_words(parser: ArgumentParser) -> None:
    actions = ["list", "check"]
    parser.add_argument("action", nargs="?", choices=actions, default="list", metavar="ACTION", help="list or check")
    parser.add_argument("call", nargs="*", metavar="CALL", help="the call to check, such as 'Bash(git push)'")
    parser.add_argument("--net", action="store_true", help="judge it as for commands with network access")
    parser.add_argument("--mode", choices=["chat", "agent"], help="judge it as for runs in this mode (default: agent)")


def trust_words(parser: ArgumentParser) -> None:
    wish = parser.add_mutually_exclusive_group()
    wish.add_argument("--revoke", action="store_true", help="no longer trust this folder")
    wish.add_argument("--list", action="store_true", help="list the trusted folders")


DECLARED = {
    "permissions": Command(
        words=permissions_words, example="pawl permissions check 'Bash(git push)'", reads=True, read=mixed
    ),
    "trust": Command(words=trust_words, example="pawl trust\n  pawl trust --revoke", reads=True),
}
_DEFAULTS = {
    "reads": "reading",
    "writes": "edits",
    "caged": "commands in the sandbox",
    "runs": "commands with a network",
    "delegates": "delegation",
    "other": "other tools",
}


def permissions(shop: Project, call: Call) -> int:
    options = call.options
    if (options.action == "check") is not bool(options.call):
        raise UsageError("'pawl permissions check' takes one call", advice="write it as 'Bash(git push)'")
    cage = permitting.SandboxMode.OPEN if options.net else permitting.SandboxMode.CLOSED
    mode = Mode(options.mode or Mode.AGENT)
    from pawl.agent.policy import served_kinds

    served = served_kinds(shop.config, shop.workspace)
    found = permitting.permissions_of(shop.config, shop.workspace, mode=mode, cage=cage, served=served)
    for notice in found.notices:
        call.aside.say(f"pawl: {notice}")
    if options.action == "check":
        from pawl.workspace.hook_runner import hooks_notice

        if notice := hooks_notice(shop.config, shop.workspace):
            call.aside.say(f"pawl: {notice}")
        return _check(permitting.permit_of(found, shop.guardrails), call)
    return _list(found, call)


def _list(found: permitting.Permitting, call: Call) -> int:
    rules, preset = found.permissions, found.permissions.preset
    lists = {
        "deny": (*rules.deny, *preset.deny),
        "ask": (*rules.ask, *preset.ask),
        "allow": (*rules.allow, *preset.allow),
    }
    defaults = {name: str(getattr(preset.defaults, name)) for name in _DEFAULTS}
    if call.options.json:
        named = [
            {"ruling": ruling, "rule": rule.text, "source": rule.source}
            for ruling, several in lists.items()
            for rule in several
        ]
        return call.emit({"preset": preset.name, "rules": named, "defaults": defaults, "notices": found.notices})
    rows = [(ruling, rule.text, rule.source) for ruling, several in lists.items() for rule in several]
    call.out.table(("says", "rule", "from"), rows, flexible=1)
    said = ", ".join(f"{_DEFAULTS[name]} {ruling}" for name, ruling in defaults.items())
    call.out.say(f"otherwise: {said}")
    return 0


def _check(permit: permitting.Permit, call: Call) -> int:
    said = permitting.asked(permit, " ".join(call.options.call))
    if call.options.json:
        return call.emit(picked(said, "ruling reason rule source suggestions"))
    call.out.say(f"{said.ruling}: {said.reason}")
    if said.rule:
        call.out.say(f"  rule  {said.rule}  ({said.source})")
    for rule in said.suggestions:
        call.out.say(f"  to allow it: {rule}")
    return 0


def trust(shop: Project, call: Call) -> int:
    if call.options.list:
        return _folders(shop, call)
    if call.options.revoke:
        return _revoke(shop, call)
    before = folder_trust(shop.config, shop.workspace)
    after = trust_folder(shop.config, shop.workspace, lambda held: _check_usable(shop, held))
    if call.options.json:
        return call.emit({"folder": shop.workspace, **_shown(after), "changed": before.changed})
    call.out.say(f"trusted: {shop.workspace}")
    for path in after.files:
        call.out.say(f"  {'~' if path in before.changed else ' '} {path}")
    if not after.files:
        call.out.say("  no file here configures or executes anything yet")
    call.out.hint("the trust lapses when one of these changes; take it back with: pawl trust --revoke")
    return 0


def _check_usable(shop: Project, held: ProjectFiles) -> None:
    """`ConfigError` where settings, hooks or servers of the folder would stop every command once they are trusted."""
    from pawl.workspace.mcp_settings import project_servers

    list(project_servers(held.text(MCP_FILE)))
    permitting.project_rules(shop.workspace, own_kinds(shop.config), [], trusted=held)
    hook_commands(project_settings(shop.workspace, held).hooks, FOLDER)


def _revoke(shop: Project, call: Call) -> int:
    known = revoke(shop.config, shop.workspace)
    listed = is_listed(shop.config, shop.workspace)
    text = f"{'no longer' if known else 'was not'} trusted: {shop.workspace}"
    text += "\nyour settings still list it under [trust]" if listed else ""
    return call.answer({"folder": shop.workspace, "revoked": known, "listed": listed}, text)


def _folders(shop: Project, call: Call) -> int:
    found = [(one, folder_trust(shop.config, one.folder)) for one in trusted_folders(shop.config)]
    if call.options.json:
        folders = [{**picked(one, "folder at"), **_shown(now), "changed": now.changed} for one, now in found]
        return call.emit({"folders": folders})
    rows = [(one.folder, str(now.standing), " ".join(now.changed)) for one, now in found]
    if not rows:
        call.out.say("no folder is trusted")
        return 0
    call.out.table(("folder", "stands", "changed"), rows, flexible=0)
    return 0


def _shown(now: FolderTrust) -> dict[str, object]:
    return {"trusted": now.standing is TrustStatus.TRUSTED, "standing": now.standing, "files": now.files}
