"""Whether a call of a model may be carried out: by the rules, the hooks and the user's own yes, kept in the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pawl.agent.context import TurnInput, Unanswered
from pawl.agent.policy import narrowed, rules_of
from pawl.agent.record import KeptRuling, RunRecord
from pawl.agent.replay import refusal_of
from pawl.agent.run_hooks import CANNOT_BE_SHOWN, Hooking, call_question, can_be_shown
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, ApprovalAnswer
from pawl.settings.guardrails import Decision, Permission
from pawl.settings.permission_rules import ToolKind
from pawl.settings.permissions import Permit, paths_in, unasked
from pawl.workspace.bench_files import GatedFiles
from pawl.workspace.project import Project


@dataclass(slots=True, kw_only=True)
class CallPermits:
    """The decisions on the calls of one run."""

    shop: Project
    record: RunRecord
    hooking: Hooking
    kind: Callable[[str], ToolKind | None]
    gated: Callable[[], GatedFiles]
    patch_of: Callable[[str, Mapping[str, object]], tuple[str, ...]]
    """An edit as lines of a patch."""
    permit: Permit | None = None
    """The rules of the workspace when None."""

    def permitted(
        self, line: TurnInput, step: int, name: str, arguments: Mapping[str, object]
    ) -> tuple[str, Mapping[str, object]]:
        """Why the call is refused, and its arguments. One that the user is to be asked about stops the talk until there
        is an answer."""
        refusal, arguments = self._refused(line, f"{line.talk}.{step}", name, arguments)
        if not refusal and self.kind(name) is ToolKind.READS:
            self._grant(paths_in(arguments))
        return refusal, arguments

    def _grant(self, paths: Sequence[str]) -> None:
        """Lets files be read that a rule asks about and the user, or a hook, said yes to."""
        gate = self.shop.read_gate()
        asked = [path for path in paths if (said := gate.judge(path)) is not None and said.ruling is Decision.ASK]
        if asked:
            granted = tuple(sorted({*self.record.data.granted, *asked}))
            self.record.keep(replace(self.record.data, granted=granted))
        for path in asked:
            self.gated().grant(path)

    def _refused(
        self, line: TurnInput, call: str, name: str, arguments: Mapping[str, object]
    ) -> tuple[str, Mapping[str, object]]:
        permission, arguments = self._ruled(line, call, name, arguments)
        each = self.record.order.approval is Approval.EACH and self.kind(name) is ToolKind.WRITES
        if permission.ruling is Decision.ALLOW and not each:
            return "", arguments
        if not can_be_shown(arguments):
            permission = replace(permission, ruling=Decision.DENY, reason=CANNOT_BE_SHOWN)
        if permission.ruling is Decision.DENY:
            root, denial = self.record.root, {"tool_name": name, "tool_input": dict(arguments)}
            root.keep(replace(root.data, denials=(*root.data.denials, denial)))
            return refusal_of(permission), arguments
        # A rule that allows it is no reason to ask.
        why = (permission.reason,) if permission.reason and permission.ruling is not Decision.ALLOW else ()
        question = call_question(call, name, arguments, why)
        answer = self.record.data.permits.get(question.digest)
        if answer is None:
            self._keep_ruling(call, permission, arguments)
            raise Unanswered(replace(question, patch=self.patch_of(name, arguments)))
        if answer.answer is ApprovalAnswer.APPROVE:
            self.record.note("approved call", {"digest": question.digest, "tool": name, "arguments": dict(arguments)})
            return "", arguments
        reason = answer.reason or "no reason was given"
        return f"refused_by_user: {reason}\nnext: do what the user wants instead, or end here", arguments

    def _permit(self, line: TurnInput) -> Permit:
        order, shop = self.record.order, self.shop
        if self.permit is None and line.mode is None:
            self.permit = rules_of(shop, order.mode)
        permit = self.permit or rules_of(shop, line.mode or order.mode)
        permit = narrowed(permit, order.allowed_tools, shop)
        return permit if order.attended else unasked(permit)

    def _ruled(
        self, line: TurnInput, call: str, name: str, arguments: Mapping[str, object]
    ) -> tuple[Permission, Mapping[str, object]]:
        """Decide by rules and hooks together; other arguments that a hook gives are judged by the rules again."""
        known = self.record.data.rulings.get(call)
        if known is not None:
            return Permission(ruling=known.ruling, reason=known.reason, firm=True), known.arguments
        permit, hooking = self._permit(line), self.hooking.about(line)
        permission = permit(name, arguments)
        for hook in (hooking.before_tool, hooking.before_asking):
            if hook == hooking.before_asking and permission.ruling is not Decision.ASK:
                break
            outcome = hook(name, arguments, call)
            if outcome is None:
                break
            if outcome.updated_input is not None:
                arguments = outcome.updated_input
                permission = permit(name, arguments)
            permission = outcome.over(permission)
        return permission, arguments

    def _keep_ruling(self, call: str, permission: Permission, arguments: Mapping[str, object]) -> None:
        """While the user is asked the process may end; hooks are not run again for the same call."""
        ruling = KeptRuling(ruling=permission.ruling, reason=permission.reason, arguments=dict(arguments))
        self.record.keep(replace(self.record.data, rulings={**self.record.data.rulings, call: ruling}))
