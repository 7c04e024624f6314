"""The one answer to who may do what, and what is sent: a pure function of stage, mode and role, and a total one.

The user's settings, and the repository's where it is trusted, add roles and prompts to the table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace

from pawl.agent.prompts import HEADINGS, Prompt, PromptFault, PromptRepository, check_prompts
from pawl.agent.roles import Role, load_roles
from pawl.agent.sub_agents import SubAgent, names_tool, sub_agents
from pawl.core.dialogue import ToolCall
from pawl.core.errors import ConfigError, PolicyViolation, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, Mode, PolicyDecision, Reasoning, ReasoningFormat, RoleName, RunTerms, Stage
from pawl.core.typed import near
from pawl.models.router import ModelConfig
from pawl.settings.config import Config
from pawl.settings.extensions import own_kinds
from pawl.settings.guardrails import Decision, Permission
from pawl.settings.permission_rules import (
    MCP_CALL,
    MCP_SEARCH,
    ROLE_CONTRACT,
    STANDS_FOR,
    PathBase,
    Rule,
    StageAllowance,
    ToolKind,
    aliases,
    allowances,
    parse_rule,
)
from pawl.settings.permissions import Defaults, Permissions, Permit, permissions_of, permit_of, preset
from pawl.settings.trust import Folder, may_have_servers, trusted_files
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, as it is where the user has reasoning on."""

    mode: Mode
    stage: Stage
    role: str
    decision: PolicyDecision


@dataclass(frozen=True, slots=True)
class Policy:
    """The table with a set of roles."""

    roles: Mapping[str, Role]
    available: frozenset[str] | None = None
    """The tools that there are here; None for all that the table knows."""
    own: Mapping[str, ToolKind] = field(default_factory=dict)
    """Tools of the user's own: for the roles that have Pawl's tool of that kind."""
    found: frozenset[str] = frozenset()
    """Those of them that are told only to who searches for them."""

    def narrowed_to(self, tools: Iterable[str], found: Iterable[str] = ()) -> Policy:
        """The same policy where only these tools exist; those of `found` are there to be searched for."""
        return replace(self, available=frozenset(tools), found=frozenset(found))

    def role(self, name: str) -> Role:
        role = self.roles.get(name)
        if role is None:
            known = f"the roles are {', '.join(self.roles)}"
            raise PolicyViolation(f"there is no role {name!r}{near(name, self.roles)}", advice=known)
        return role

    def decide(
        self, stage: Stage, mode: Mode, role: str, *, reasoning: Reasoning, approval: Approval = Approval.FINAL
    ) -> PolicyDecision:
        """Decide what a role gets at a stage in a mode. The approval is the user's and stays as it is."""
        row, who = allowances().rows[stage, mode], self.role(role)
        contract = who.contract if row.contract == ROLE_CONTRACT else row.contract
        asked = row.reasoning if reasoning is Reasoning.ON else ReasoningFormat.NONE
        return PolicyDecision(
            tools=self._tools(row, who, self.available),
            found=self._tools(row, who, self.found) if self.found else (),
            prompts=("base", who.prompt, "project_root", f"modes/{mode}", row.prompt, *_reasoning(asked, contract)),
            reasoning=asked,
            approval=approval,
            contract=contract,
            reasoning_required=asked is not ReasoningFormat.NONE and mode is Mode.AGENT,
        )

    def rows(self) -> tuple[Row, ...]:
        """Every combination of mode, stage and role."""
        return tuple(
            Row(mode, stage, role, self.decide(stage, mode, role, reasoning=Reasoning.ON))
            for mode in Mode
            for stage in Stage
            for role in self.roles
        )

    def _tools(self, row: StageAllowance, role: Role, available: frozenset[str] | None) -> tuple[str, ...]:
        kinds = allowances().tools
        chosen = [tool for tool in role.tools if kinds[tool] in row.kinds]
        chosen += [tool for tool, kind in self.own.items() if kind in row.kinds and _has_own(role, tool, kind)]
        return tuple(sorted(tool for tool in chosen if available is None or tool in available))


def _has_own(role: Role, tool: str, kind: ToolKind) -> bool:
    return STANDS_FOR[kind] in role.tools if role.own is None else tool in role.own


def _reasoning(asked: ReasoningFormat, contract: str) -> tuple[str, ...]:
    """A JSON answer has no room for a block beside it, so that there the reasoning is a field of the answer."""
    if asked is ReasoningFormat.NONE:
        return ()
    return ("reasoning/field",) if contract else (f"reasoning/{asked}",)


@functools.cache
def standard_policy() -> Policy:
    """The policy with the roles that come with Pawl."""
    return Policy(load_roles())


_MODES = {f"modes/{mode}": HEADINGS[f"modes/{mode}"] for mode in Mode}
_REASONING = {name: heading for name, heading in HEADINGS.items() if name.startswith("reasoning/")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The contents of a request, read off the request itself."""

    mode: Mode
    reasoning: Reasoning
    """Told to the provider beside the prompts."""
    model: str
    tools: tuple[str, ...]
    system: tuple[str, ...]


def check_request(policy: Policy, terms: RunTerms, stage: Stage, role: str, sent: Sent) -> PolicyDecision:
    """The decision that the request keeps to; `PolicyViolation` names the first thing that is not as it must be."""
    decision = policy.decide(stage, terms.mode, role, reasoning=terms.reasoning)
    where = f"at {stage} for {role}"
    if sent.mode is not terms.mode:
        raise _violation("mode", where, f"the user's is {terms.mode}, the request's {sent.mode}")
    modes = _present(_MODES, sent)
    if modes != (f"modes/{terms.mode}",):
        raise _violation("mode", where, f"the user's is {terms.mode}, the prompts say {', '.join(modes) or 'none'}")
    if sent.reasoning is not terms.reasoning:
        raise _violation("reasoning", where, f"the user's is {terms.reasoning}, the request's {sent.reasoning}")
    expected = tuple(name for name in decision.prompts if name in _REASONING)
    prompts = _present(_REASONING, sent)
    if prompts != expected or bool(prompts) != (terms.reasoning is Reasoning.ON):
        asked, got = (", ".join(names) or "none" for names in (expected, prompts))
        raise _violation("reasoning", where, f"it is {terms.reasoning}, which asks for {asked}, not {got}")
    if sorted(sent.tools) != list(decision.tools):
        raise _violation("tools", where, _difference(frozenset(sent.tools), frozenset(decision.tools)))
    if sent.model != terms.model_for(role):
        raise _violation("model", where, f"the user's is {terms.model_for(role)!r}, the request's {sent.model!r}")
    return decision


def may_call(decision: PolicyDecision, tool: str) -> None:
    """`PolicyViolation` unless the tool was given for this stage, whatever a model asks for."""
    if tool not in decision.tools and tool not in decision.found:
        allowed = ", ".join(decision.tools) or "none; answer in words"
        raise PolicyViolation(f"{tool!r} is not a tool of this stage", advice=f"the tools are: {allowed}")


def found_call(call: ToolCall) -> ToolCall:
    """The call of a tool that was found by a search, as if it had been told: every rule is about that one."""
    given = call.arguments or {}
    name, arguments = given.get("name"), given.get("arguments", {})
    if call.name != MCP_CALL or not isinstance(name, str) or not isinstance(arguments, Mapping):
        return call
    return replace(call, name=name, arguments=dict(arguments))


def _present(headings: dict[str, str], sent: Sent) -> tuple[str, ...]:
    """The prompts whose heading opens a part; text of a file never does, for it stands inside a part of its own."""
    return tuple(
        name for part in sent.system for name, heading in headings.items() if part.partition("\n")[0] == heading
    )


def _difference(sent: frozenset[str], allowed: frozenset[str]) -> str:
    more, fewer = sorted(sent - allowed), sorted(allowed - sent)
    said = [f"not allowed: {', '.join(more)}"] * bool(more) + [f"missing: {', '.join(fewer)}"] * bool(fewer)
    return "; ".join(said) or "a tool is offered twice"


def _violation(what: str, where: str, why: str) -> PolicyViolation:
    return PolicyViolation(
        f"the {what!r} of a request {where} is not as it must be: {why}", advice="this is a fault of Pawl; report it"
    )


def as_markdown(policy: Policy | None = None) -> str:
    """Kinds of tools, what each stage allows, the roles, and what each role then has."""
    policy = policy or standard_policy()
    parts = (
        ("A kind of tool", _table(("kind", "tools"), _kinds())),
        ("What a stage allows", _table(("stage", "in chat", "in agent", "reasoning, when on", "answer"), _stages())),
        (
            "Roles",
            _table(("role", "tools", "may send", "answer", "model slot", "temperature", "context"), _roles(policy)),
        ),
        ("What a role has", _table(("mode", "role", "stage", "tools"), _grants(policy))),
    )
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts) + "\n"


def _kinds() -> Iterator[Sequence[str]]:
    tools = allowances().tools
    for kind in ToolKind:
        yield kind, _code(tool for tool in tools if tools[tool] is kind)


def _stages() -> Iterator[Sequence[str]]:
    rows = allowances().rows
    for stage in Stage:
        chat, agent = rows[stage, Mode.CHAT], rows[stage, Mode.AGENT]
        answer = {"": "text", ROLE_CONTRACT: "the role's"}.get(agent.contract, f"`{agent.contract}`")
        kinds = (", ".join(kind for kind in ToolKind if kind in row.kinds) or "–" for row in (chat, agent))
        yield stage, *kinds, agent.reasoning, answer


def _roles(policy: Policy) -> Iterator[Sequence[str]]:
    for role in policy.roles.values():
        yield (
            f"**{role.name}**: {role.description}",
            _code(role.tools),
            ", ".join(sorted(role.delegates)) or "–",
            f"`{role.contract}`" if role.contract else "text",
            role.model,
            f"{role.temperature:g}",
            f"{role.context_tokens:,}",
        )


def _grants(policy: Policy) -> Iterator[Sequence[str]]:
    """Stages in which a role has the same tools share a line; those without tools are left out."""
    grants: dict[tuple[Mode, str, tuple[str, ...]], list[str]] = {}
    for row in sorted(policy.rows(), key=lambda row: (list(Mode).index(row.mode), list(policy.roles).index(row.role))):
        if row.decision.tools:
            grants.setdefault((row.mode, row.role, row.decision.tools), []).append(row.stage)
    for (mode, role, tools), stages in grants.items():
        yield mode, role, ", ".join(stages), _code(tools)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_FORMS = "requests/"


def prompt_folders(config: Config, workspace: str) -> tuple[Folder, ...]:
    """Where overrides come from: the user's own, then the repository's if the user trusts it."""
    return _folders(config, workspace, "prompts")


def _folders(config: Config, workspace: str, name: str) -> tuple[Folder, ...]:
    own = config.file.parent / name
    trusted = trusted_files(config, workspace)
    theirs = None if trusted is None else trusted.folder(f".pawl/{name}")
    folders: tuple[Folder, ...] = (own,) if own.is_dir() else ()
    if theirs is not None and theirs.files:
        folders += (replace(theirs, name=f"{workspace}/{theirs.name}"),)
    return folders


def policy_of(config: Config, workspace: str) -> Policy:
    """The table with the roles of the user's own, and of the repository if the user trusts it."""
    present = _folders(config, workspace, "roles")
    policy = Policy(load_roles(present)) if present else standard_policy()
    agents = sub_agents(config, workspace)
    own = {**own_kinds(config), **served_kinds(config, workspace)}
    if agents:
        policy = replace(policy, roles=_with_agents(policy.roles, agents, own))
    return replace(policy, own=own) if own else policy


def _with_agents(
    roles: Mapping[str, Role], agents: Mapping[str, SubAgent], own: Mapping[str, ToolKind]
) -> dict[str, Role]:
    """The roles with sub-agents, none of which may do what the artisan, who sends them, may not."""
    artisan = roles[RoleName.ARTISAN]
    usable = frozenset(tool for tool, kind in own.items() if _has_own(artisan, tool, kind))
    made = {
        name: replace(
            artisan,
            name=name,
            source=one.source,
            description=one.description,
            prompt=one.prompt,
            tools=_tools_of(one, artisan),
            own=_own_of(one, usable, own),
            turns=one.turns,
            skills=one.skills,
            example=(),
        )
        for name, one in agents.items()
        if name not in roles
    }
    sends = replace(artisan, tools=artisan.tools | {"delegate"}, delegates=artisan.delegates | made.keys())
    return {**roles, RoleName.ARTISAN: sends, **made}


def _tools_of(one: SubAgent, artisan: Role) -> frozenset[str]:
    named = (artisan.tools if one.tools is None else artisan.tools & one.tools) - one.denied
    kinds = allowances().tools
    return frozenset(tool for tool in named if kinds[tool] is ToolKind.READS) if one.reads_only else named


def _own_of(one: SubAgent, usable: frozenset[str], own: Mapping[str, ToolKind]) -> frozenset[str] | None:
    """The tools of the user's own that a sub-agent names; None where it names none and gives none up."""
    if one.tools is None and not one.denied:
        return None
    if one.reads_only:
        usable = frozenset(tool for tool in usable if own[tool] is ToolKind.READS)
    named = usable if one.tools is None else frozenset(tool for tool in usable if names_tool(one.tools, tool))
    left = frozenset(tool for tool in named if not names_tool(one.denied, tool))
    return left | (usable & {MCP_SEARCH, MCP_CALL} if left else frozenset())


def served_kinds(config: Config, workspace: str) -> Mapping[str, ToolKind]:
    """The kinds of the tools of MCP servers that the user agreed to."""
    if not may_have_servers(config, workspace):
        return {}
    from pawl.agent.mcp_pins import mcp_kinds

    return mcp_kinds(config, workspace)


def templates(config: Config, workspace: str) -> tuple[str, ...]:
    """The names of the forms that a request can be put into."""
    return tuple(
        sorted(name.removeprefix(_FORMS) for name in prompts(config, workspace).names() if name.startswith(_FORMS))
    )


def request_from(config: Config, workspace: str, template: str, text: str) -> str:
    """The request in the form of that name, which is read without a model (A14)."""
    if template not in (known := templates(config, workspace)):
        raise UsageError(f"there is no template {template!r}", advice=f"there are {', '.join(known)}")
    variables = {"user_input": text, "project_root": workspace}
    return prompts(config, workspace).render(f"{_FORMS}{template}", variables)


def prompts(config: Config, workspace: str) -> PromptRepository:
    """Pawl's own with their overrides, and those of sub-agents."""
    return PromptRepository.load(
        prompt_folders(config, workspace),
        [Prompt(name=one.prompt, text=one.text, source=one.source) for one in sub_agents(config, workspace).values()],
    )


def prompt_faults(config: Config, workspace: str) -> list[PromptFault]:
    return check_prompts(prompt_folders(config, workspace))


def policy_rows(mode: Mode | None, stage: Stage | None, role: RoleName | None) -> tuple[Row, ...]:
    """The rows of the table that these choices leave."""
    return tuple(
        row
        for row in standard_policy().rows()
        if mode in (None, row.mode) and stage in (None, row.stage) and role in (None, row.role)
    )


def model_of(config: ModelConfig, role: Role) -> str:
    """The model of a role: its own slot, else the slot that its file names, else the default."""
    slots = config.routes.slots
    return slots.get(role.name) or slots.get(role.model) or config.routes.model_for(role.model)


def rules_of(shop: Project, mode: Mode) -> Permit:
    """The permission rules of the workspace, for commands that are confined and have no network."""
    served = served_kinds(shop.config, shop.workspace)
    return permit_of(permissions_of(shop.config, shop.workspace, mode=mode, served=served), shop.guardrails)


def narrowed(permit: Permit, allowed: Sequence[str], shop: Project) -> Permit:
    """The rules for a command of the user's own that names its tools: whatever else would change something is asked
    about, also where the rules allow it. Names that are not known here are passed over."""
    if not allowed:
        return permit
    harmless, rules = preset("standard"), list[Rule]()
    for text in allowed:
        with suppress(ConfigError):
            rules.append(parse_rule(text))
    asks = Defaults(**dict.fromkeys(Defaults.__annotations__, Decision.ASK))
    place = PathBase(shop.workspace, str(shop.config.home))
    named = Permissions(preset=replace(harmless, defaults=asks), allow=tuple(rules), place=place)
    free = aliases()["Read"] | aliases()["Task"]

    def permitted(tool: str, arguments: Mapping[str, object]) -> Permission:
        found = permit(tool, arguments)
        if not found.allowed or tool in free or named.permit(tool, arguments).allowed:
            return found
        return Permission(ruling=Decision.ASK, reason="the command's allowed-tools do not name it", firm=True)

    return permitted
