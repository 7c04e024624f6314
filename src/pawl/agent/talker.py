"""Talks of a run with models: seats with their terms, taped step by step, every request on record and in the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pawl.agent.agent_loop import converse
from pawl.agent.attachments import attachments
from pawl.agent.briefing import (
    configured,
    failing_text,
    handed_over,
    instructions,
    read_ahead,
    reads_of,
    run_budget,
    standing_context,
    subject_of,
)
from pawl.agent.call_permits import CallPermits
from pawl.agent.context import AgentContext, LoopEnd, Spoken, TurnInput
from pawl.agent.context_watch import ContextWatch, afresh, later_tasks
from pawl.agent.demands import is_about_tests
from pawl.agent.inbox import Inbox
from pawl.agent.policy import Policy, model_of, policy_of, prompts, standard_policy
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.replay import ReplayLog, TalkEvents, TapedModel, TapedTools
from pawl.agent.roles import Role
from pawl.agent.run_hooks import Hooking
from pawl.agent.skill_library import skills_of
from pawl.agent.tools.toolbox import DELEGATE, Others, TeamDesk
from pawl.agent.works import BenchWorks
from pawl.core.change import EMPTY
from pawl.core.diagnostic import Status
from pawl.core.dialogue import Attachment, Message, Sampling, TextDelta, assistant, user
from pawl.core.errors import AnswerInterrupted, CannotCompose, ModelError, PawlError, UnknownModel
from pawl.core.events import CommandPrinted, FilesChanged, RequestAnswered, RequestSent, RunEvent, Steered, Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_message
from pawl.core.run import (
    Budget,
    Detail,
    Intent,
    Mode,
    Reasoning,
    RequestRecord,
    RoleName,
    RunTerms,
    Stage,
)
from pawl.core.tiers import Tier
from pawl.models.router import ModelConfig, Models
from pawl.models.telemetry import RequestBook, Telemetry, metered
from pawl.sandbox.cancel import CancelToken
from pawl.settings.permission_rules import ToolKind, allowances
from pawl.settings.permissions import Permit
from pawl.workspace.project import Project

ROLES = (RoleName.ARTISAN, RoleName.PLANNER, RoleName.REVIEWER)
"""Who takes part in a run without tiers."""
TESTS = "tests"
"""By whom words of the replay log are said that tell of the baseline."""
JOIN_SECONDS, ONLY_SECONDS = 10.0, 60.0
"""How long a talk about failing tests waits for them before its second request, and one that has no second."""
SHARE = 4
"""Whoever is sent has this part of the turns of a run, and of the money and tokens that are left."""
HANDED = "handed"
"""The snapshot of a conversation of questions that holds the code that was handed over at its start."""


@dataclass(slots=True, kw_only=True)
class Talker:
    """Talks of one run with the models, taken up where they were interrupted."""

    shop: Project
    record: RunRecord
    works: BenchWorks
    conversation: str
    listen: Callable[[RunEvent], object]
    inbox: Inbox
    hooking: Hooking
    others: Callable[[Talker, TurnInput, ReplayLog], Others]
    """Those whom a talk of it may send."""
    cancel: CancelToken | None = None
    permit: Permit | None = None
    """The rules of the workspace when None."""
    tier: Tier | None = None
    """Whose models and temperatures the roles have, where it names any."""
    warmth: float | None = None
    """The temperature of the artisan, so that samples differ."""
    beside: int = 1
    """How many were sent at the same time, and have one purse."""
    heard: TalkEvents = field(default_factory=lambda: TalkEvents(replayed=False))
    """Of the latest talk."""
    _standing: tuple[str, ...] | None = None
    _closing: ExitStack = field(default_factory=ExitStack)
    _config: ModelConfig | None = None
    _models: Models | None = None
    _aheads: dict[tuple[str, bool], tuple[str, ...]] = field(default_factory=dict)
    _policy: Policy | None = None
    _telemetry: Telemetry | None = None
    _permits: CallPermits = field(init=False)

    def __post_init__(self) -> None:
        self._permits = CallPermits(
            shop=self.shop,
            record=self.record,
            hooking=self.hooking,
            kind=self._kind,
            gated=lambda: self.works.desk.gated,
            patch_of=lambda name, arguments: self.works.desk.patch_of(name, arguments),
            permit=self.permit,
        )

    def close(self) -> None:
        self._closing.close()

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            self._policy = policy_of(self.shop.config, self.shop.workspace)
        return self._policy

    @property
    def config(self) -> ModelConfig:
        if self._config is None:
            read = configured(self.shop, self.record.order.model)
            self._config = replace(read, budget=run_budget(self.shop, self.record.order))
        return self._config

    @property
    def configured(self) -> bool:
        with suppress(UnknownModel):
            return bool(model_of(self.config, self.policy.role(RoleName.ARTISAN)))
        return False

    def check_model(self) -> None:
        """Raise what would keep the model from being asked, before anything is run for it."""
        self._check(self._model(RoleName.ARTISAN))

    def _check(self, model: str) -> None:
        router = self._opened()[0].router
        if not router.routes.fallbacks.get(model):
            router.opened(model)

    def warn_of_models(self, named: Iterable[str]) -> None:
        """Say before anything is run what will keep these models, or that of the settings, from being asked; what needs
        no model goes on."""
        for model in dict.fromkeys(named) or ([self._model(RoleName.ARTISAN)] if self.configured else ()):
            try:
                self._check(model)
            except ModelError as error:
                self.listen(Warned(f"{error.message}: {error.advice}" if error.advice else error.message))

    @property
    def terms(self) -> RunTerms:
        order = self.record.order
        roles = (*(ROLES if self.tier is None else RoleName), *sorted(self.policy.role(RoleName.ARTISAN).delegates))
        chosen = {role: self._model(role) for role in roles}
        first = chosen[RoleName.ARTISAN]
        return RunTerms(
            run=self.record.run,
            conversation=self.conversation,
            mode=order.mode,
            reasoning=Reasoning(order.reasoning or self.shop.config.settings.reasoning),
            model=first,
            role_models=tuple((role, model) for role, model in chosen.items() if model != first),
        )

    def _model(self, role: str) -> str:
        of_tier = self.tier.model_for(role) if self.tier is not None else ""
        try:
            return of_tier or model_of(self.config, self.policy.role(role))
        except UnknownModel:
            # A tier need not name one for the roles that it does not ask.
            if self.tier is None or role is RoleName.ARTISAN:
                raise
            return self._model(RoleName.ARTISAN)

    def say(self, line: TurnInput) -> Spoken:
        line = afresh(line, self.record, self.works.desk.files)
        tape = ReplayLog(
            list(self.shop.store.runs.steps(self.record.run, line.talk)),
            lambda number, body: self.shop.store.runs.add_step(self.record.run, line.talk, number, body),
        )
        self.works.restore()
        self.heard = TalkEvents(replayed=tape.is_behind)
        models, _ = self._opened()
        terms = self._terms(line)
        watch = ContextWatch(self.shop, terms, models.reads(terms.model_for(line.role)), line.role)
        if line.stage is None:
            watch.begin(self.record.order.text, later_tasks(line, self.record))
        seat = self._seat(line, tape, watch)
        if line.role is not RoleName.ARTISAN and not tape.steps:
            self.hooking.role_begins(line.role, line.talk)
        try:
            names = "@" in line.text or (self.record.order.pictures and not line.sent)
            files = self._attached(line, terms) if line.stage is None and names else ()
            spoken = converse(seat, line.history, line.text, line.stage, read=self._mentioned(line), files=files)
        except AnswerInterrupted as error:
            if line.mode is not None:
                self._keep_half(line, error.text)
            raise
        if line.role is not RoleName.ARTISAN and not line.sent and self.record.talk(line.talk).dialogue is None:
            self.hooking.role_ends(line.role, line.talk, spoken.text)
        if seat.once and terms.mode is Mode.AGENT:
            self._put(spoken.text)
        self._keep(line, spoken, watch)
        return spoken

    def repeat(self, line: TurnInput, text: str) -> Spoken:
        """An answer that was given before becomes part of the conversation like any other; no model is asked."""
        said = (user(line.text), assistant(text))
        spoken = Spoken(text=text, ended=LoopEnd.ANSWERED, messages=said, said=said, requests=0)
        self._keep(line, spoken, ContextWatch(self.shop, self._terms(line)))
        self.listen(TextDelta(text))
        return spoken

    @property
    def standing(self) -> tuple[str, ...]:
        """Context for every agent loop of the run: words of hooks, instructions, memories, the memory bank."""
        if self._standing is None:
            told = standing_context(self.shop, self.works.desk, self.record.order, self.listen)
            self._standing = (*(self.record.root.data.hook_context or ()), *told)
        return self._standing

    @property
    def notices(self) -> tuple[str, ...]:
        """Failures of telemetry."""
        return (self._telemetry.notice,) if self._telemetry is not None and self._telemetry.notice else ()

    def _terms(self, line: TurnInput) -> RunTerms:
        return replace(self.terms, mode=line.mode) if line.mode is not None else self.terms

    def history(self, talk: str) -> tuple[Message, ...]:
        return self.record.talk(talk).dialogue or ()

    def earlier(self) -> tuple[Message, ...]:
        upto = self.record.data.said_before
        if not upto:
            return ()
        said = self.shop.store.transcripts.messages(self.conversation)
        return tuple(one.message for one in said if one.sent_again and one.number <= upto)

    def _heard(self, tape: ReplayLog) -> tuple[str, ...]:
        """The user's words meanwhile; in the replay log, so that they are heard at the same place again."""
        live = not tape.is_behind
        said = tape.heard(self.inbox.take_words)
        for text in said if live else ():
            self.listen(Steered(text))
        return said

    def _works_alone(self, line: TurnInput) -> bool:
        """Whether the role works on the bench of the run; attempts of a tier are told of the tests as they begin."""
        plain = line.stage is None and line.mode is None and not line.sent
        return plain and self.tier is None and self.record.order.mode is Mode.AGENT

    def _owes_change(self, line: TurnInput) -> bool:
        """Whether the user's words ask for a change, and nothing was made or refused before."""
        intent, begun = self.record.data.intent, self.record.data.refused or self.record.work(WorkName.BENCH)
        asked = intent is not None and intent.intent in (Intent.EDIT, Intent.FIX) and not intent.unsaid
        return asked and not begun and self._works_alone(line)

    def _tested(self, tape: ReplayLog, *, waits: bool) -> tuple[str, ...]:
        """The failing tests of the baseline, once, when it is there; a request that is about them waits a while."""
        if tape.is_behind:
            return tape.heard(tuple, by=TESTS)
        if self.record.data.baseline_told or any(one.get("by") == TESTS for one in tape.steps):
            return ()
        order, intent = self.record.order, self.record.data.intent
        about = is_about_tests(order.text) or (intent is not None and intent.intent is Intent.FIX)
        if waits and self.works.known_before() is None:
            self.works.early.begin()
        before = self.works.known_before(ONLY_SECONDS if waits else JOIN_SECONDS if about else 0.0)
        if before is None:
            return ()
        shown = self.shop.read_gate().told(before.findings)
        # Once something was changed, what failed without it is only to be known by name.
        begun = self.works.desk.bench.is_open and bool(self.works.standing())
        text = failing_text(shown, named=begun) if before.standing is Status.FAIL else ""
        if about and before.standing is Status.PASS and before.counts is not None:
            text = f"All tests pass ({before.counts.passed})."
        said = tape.heard(lambda: (f"[the tests before any change]\n{text}",) if text else (), by=TESTS)
        self.record.keep(replace(self.record.data, baseline_told=True))
        return said

    def _seat(self, line: TurnInput, tape: ReplayLog, watch: ContextWatch) -> AgentContext:
        """The one place where the context of an agent is made."""
        models, telemetry = self._opened()
        shop, desk, hooking = self.shop, self.works.desk, self._hooks_of(line)
        desk.bench.printed = lambda text: self.listen(CommandPrinted(text))
        for path in self.record.data.granted:
            desk.gated.grant(path)
        terms, role = self._terms(line), self.policy.role(line.role)
        team = self._team(role, line, tape) if role.delegates else None
        once = self.asks_once(line.role)
        # Whoever is asked once is given no tools to look around with either: what is judged stands in the prompt.
        there = ((), ()) if once and line.stage is not None else ((team or desk).names, desk.found)
        policy = self.policy.narrowed_to(*there)
        model = models.router.conversation()
        book = RequestBook(shop, model, telemetry)
        told = {"tool_summary": line.summary, "last_step_outcome": line.outcome}
        variables = {"project_root": shop.workspace, "user_input": self.record.order.text}
        usual, most_output = models.config.sampling, models.most_output(terms.model_for(line.role))
        longest = min(usual.max_output, most_output, line.longest or most_output)
        asks_once = once and line.stage is None
        warmth, owes = self._temperature(role, usual.temperature), self._owes_change(line)
        tools = TapedTools(
            team or desk,
            tape,
            expect=team.expect if team is not None else lambda calls: None,
            keep=self._keep_step,
            permit=partial(self._permits.permitted, line),
            after=partial(hooking.answered, line.talk),
            catch_up=self._catch_up,
            cancel=self.cancel,
        )
        return AgentContext(
            terms=terms,
            role=policy.role(line.role),
            policy=policy,
            prompts=prompts(shop.config, shop.workspace),
            variables={**variables, **{name: text for name, text in told.items() if text}},
            model=TapedModel(model, tape),
            tools=tools,
            together=partial(tools.together, DELEGATE),
            record=lambda record: self._record(record, book.record, tape, models),
            listen=partial(self._hear, watch, tape, models, line),
            clean=watch.clean,
            compress=partial(self._compressed, watch),
            context=self._context(line),
            work_left=("nothing was changed yet",) if owes else self.record.data.refused if line.stage is None else (),
            owes_change=owes,
            once=asks_once,
            heard=partial(self._heard, tape) if line.stage is None else tuple,
            found=partial(self._tested, tape, waits=asks_once) if self._works_alone(line) else tuple,
            stopping=partial(hooking.sending_back, tape, line) if line.stage is None else lambda text: (),
            limits=self._limits(role) if line.sent else self.config.budget,
            is_spent=models.router.ledger.share(SHARE / min(self.beside, SHARE - 1)) if line.sent else lambda: False,
            sampling=replace(usual, max_output=longest, temperature=warmth),
            detail=Detail(shop.config.settings.detail),
            cancel=self.cancel,
        )

    def _limits(self, role: Role) -> Budget:
        """Of one who is sent."""
        whole = self.config.budget
        share = max(2, whole.turns // SHARE)
        return replace(whole, turns=min(share, role.turns or share))

    def _temperature(self, role: Role, usual: float) -> float:
        """A role of the user's own keeps its figure everywhere; those of Pawl have theirs in tiers (E2, A10)."""
        if self.tier is None:
            like = role.name if role.name in set(RoleName) else RoleName.ARTISAN
            unsaid = {standard_policy().role(like).temperature, Sampling().temperature}
            return usual if role.temperature in unsaid else role.temperature
        if self.warmth is not None and role.name == RoleName.ARTISAN:
            return self.warmth
        return dict(self.tier.temperatures).get(role.name, role.temperature)

    def _team(self, role: Role, line: TurnInput, tape: ReplayLog) -> TeamDesk:
        """A desk from which others are sent."""
        about = {name: self.policy.role(name).description for name in role.delegates - set(RoleName)}
        return TeamDesk(desk=self.works.desk, role=role, others=self.others(self, line, tape), about=about)

    def _hear(self, watch: ContextWatch, tape: ReplayLog, models: Models, line: TurnInput, event: RunEvent) -> None:
        """Pass an event on, unless it was shown before an interruption."""
        watch.hear(event)
        if isinstance(event, RequestSent) and self._works_alone(line) and self.record.data.baseline is None:
            self.works.early.begin()
        if tape.hides(event):
            return
        self.heard.take(event)
        self.listen(event)
        if isinstance(event, RequestAnswered):
            self.works.early.hurry.set()
            self.listen(metered(models, event))

    def _hooks_of(self, line: TurnInput) -> Hooking:
        """Who only looks on changes nothing on the bench, also not by a hook."""
        desk = self.works.desk
        hooking = self.hooking.about(line)
        return hooking.on(lambda: desk.bench.bench, desk.gated) if line.stage is None else hooking

    def _context(self, line: TurnInput) -> tuple[str, ...]:
        """The same throughout the run, so that prompt caches hold: read once, and once for whoever plans.

        Who only looks on is told how to work here, and nothing of the workspace.
        """
        shop, desk, text = self.shop, self.works.desk, self.record.order.text
        if line.stage not in (None, Stage.PLAN):
            if self.record.data.told_onlooker is None:
                told = instructions(shop, desk, text, self.listen)
                self.record.keep(replace(self.record.data, told_onlooker=told))
            return self.record.data.told_onlooker or ()
        name = "told_planner" if line.stage is Stage.PLAN else "told"
        known: tuple[str, ...] | None = getattr(self.record.data, name)
        if known is None:
            known = (*self.standing, *self._found(line))
            made: Any = {name: known}
            self.record.keep(replace(self.record.data, **made))
        return (*known, *self._skill_texts(self.policy.role(line.role))) if line.sent else known

    def _skill_texts(self, role: Role) -> tuple[str, ...]:
        """The skills that a sub-agent begins with."""
        if not role.skills:
            return ()
        skills = skills_of(self.shop.config, self.shop.workspace, self.shop.read_gate().shows)
        found = (skills[name] for name in role.skills if name in skills)
        return tuple(f"# Skill: {one.name}\n{one.read()}" for one in found if one.is_offered)

    def _found(self, line: TurnInput) -> tuple[str, ...]:
        """Code that the request may be about; a conversation of questions keeps what it began with, as caches do."""
        shop, asks = self.shop, line.mode is Mode.CHAT
        if self.asks_once(line.role):
            return () if asks else self._chosen(line, as_reads=False)
        if asks and line.history:
            kept = shop.store.snapshots.get(shop.workspace, self.conversation, HANDED) or {}
            known = kept.get("texts")
            return tuple(map(str, known)) if isinstance(known, list) else ()
        text = self.record.order.text
        subject = replace(subject_of(shop, self.record, text, asks=asks), read=self._ahead(text, named=True))
        texts = handed_over(shop, self.works.desk.files, subject)
        if asks and texts:
            shop.store.snapshots.put(shop.workspace, self.conversation, HANDED, {"texts": list(texts)})
        return texts

    def asks_once(self, role: str) -> bool:
        """Whether the role's model is asked once, with all the code it needs, instead of being given tools."""
        return self._opened()[0].can(self.terms.model_for(role)).once

    def _chosen(self, line: TurnInput, *, as_reads: bool) -> tuple[str, ...]:
        """All the code that comes with the one request: files to be read ahead, or a part of the prompt."""
        from pawl.agent import one_request

        order, models = self.record.order, self._opened()[0]
        tokens = one_request.budget(models.reads(self.terms.model_for(line.role)))
        subject = subject_of(self.shop, self.record, line.text if as_reads else order.text, asks=as_reads)
        found = one_request.chosen(self.shop, self.works.desk.files, subject, tokens)
        return one_request.as_reads(found) if as_reads else one_request.as_text(found)

    def _put(self, answer: str) -> None:
        """The code of an answer, in the files of the bench."""
        from pawl.agent import one_request

        if one_request.written(self.works.desk.files, answer):
            self.record.keep_work(WorkName.BENCH, self.works.standing())

    def _opened(self) -> tuple[Models, Telemetry]:
        if self._models is None:
            order, run = self.record.order, self.record.run
            models = Models(
                self.config,
                record=Path(order.record) if order.record else None,
                used=self.record.root.data.scripts,
                warn=lambda text: self.listen(Warned(text)),
            )
            self._models = self._closing.enter_context(models)
            known = self.shop.store.requests.records(self.shop.workspace, run=run)
            if known:
                # What the run has spent before it was interrupted counts.
                models.router.ledger.count(known)
            self._telemetry = self._closing.enter_context(Telemetry.open(self.config.environment))
        assert self._telemetry is not None
        return self._models, self._telemetry

    def _record(
        self, record: RequestRecord, write: Callable[[RequestRecord], object], tape: ReplayLog, models: Models
    ) -> None:
        """The request log, the answer and the place in a script become durable as one."""
        if tape.replayed:
            return
        with self.shop.store.together():
            write(record)
            tape.keep_fresh()
            if models.used:
                root = self.record.root
                root.keep(replace(root.data, scripts=models.used))

    def _keep_step(self, tool: str, write: Callable[[], None]) -> None:
        changes = self._kind(tool) in (ToolKind.WRITES, ToolKind.RUNS) or self.hooking.exist or tool == DELEGATE
        standing = self.works.standing() if changes and self.works.desk.bench.is_open else None
        before = EMPTY if standing is None else self.record.work(WorkName.BENCH) or EMPTY
        with self.shop.store.together():
            if standing is not None:
                self.record.keep_work(WorkName.BENCH, standing)
            write()
        # Where the user has worked on the same file meanwhile there is no telling.
        with suppress(CannotCompose):
            made = self.shop.read_gate().shown(before.inverted().then(standing or EMPTY))
            if made:
                self.listen(FilesChanged(made))

    def _kind(self, tool: str) -> ToolKind | None:
        return allowances().tools.get(tool) or self.policy.own.get(tool)

    def _compressed(
        self, watch: ContextWatch, messages: Sequence[Message], *, request: int, too_long: bool
    ) -> Sequence[Message]:
        made = watch.compress(messages, request=request, too_long=too_long)
        return self.hooking.compressing(messages, made, forced=too_long)

    def _catch_up(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        """The editor knows again what was read in the part that comes from the tape."""
        for path in dict.fromkeys(str(arguments.get("path", "")) for _, arguments in calls):
            with suppress(PawlError, OSError):
                if path:
                    self.works.desk.editor.read(path)

    def _attached(self, line: TurnInput, terms: RunTerms) -> tuple[Attachment, ...]:
        can = self._opened()[0].can(terms.model_for(line.role))
        pictures = () if line.sent else self.record.order.pictures
        given = ((name, self.shop.store.blobs.get(blob)) for name, blob in pictures)
        return tuple(attachments(self.works.desk.files, line.text, can, lambda why: self.listen(Warned(why)), given))

    def _mentioned(self, line: TurnInput) -> Sequence[str]:
        """Files that the user named, read ahead; the same ones when the talk is taken up again."""
        if line.stage is not None or not self.record.order.read_ahead:
            return ()
        talk = self.record.talk(line.talk)
        if talk.read is None:
            named = not line.history or line.mode is not None
            asks_once = line.mode is Mode.CHAT and self.asks_once(line.role)
            read = self._chosen(line, as_reads=True) if asks_once else ()
            read = read or self._ahead(line.text, named=named)
            # What the planner has read need not be asked for again.
            planned = reads_of(self.history("plan")) if not line.history and self._works_alone(line) else ()
            talk = replace(talk, read=tuple(dict.fromkeys((*read, *planned))))
            self.record.keep_talk(line.talk, talk)
        return talk.read or ()

    def _ahead(self, text: str, *, named: bool) -> tuple[str, ...]:
        """What is read ahead for a text; asked for twice in a request, and looked for once."""
        if (text, named) not in self._aheads:
            self._aheads[text, named] = tuple(read_ahead(self.works.desk.files, text, named=named))
        return self._aheads[text, named]

    def _keep(self, line: TurnInput, spoken: Spoken, watch: ContextWatch) -> None:
        """Write the dialogue into the transcript, once."""
        talk = self.record.talk(line.talk)
        if talk.dialogue is not None:
            return
        with self.shop.store.together():
            self.record.keep_talk(
                line.talk,
                replace(talk, dialogue=tuple(redacted_message(replace(one, files=())) for one in spoken.messages)),
            )
            if line.stage is None and not line.sent and spoken.ended is not LoopEnd.EMPTY:
                *others, last = self._as_said(spoken.said)
                for message in others:
                    self._transcribe(message)
                self._transcribe(last, reasoning="\n\n".join(self.heard.thoughts))
        if line.stage is None and not line.sent:
            watch.keep(line.text, spoken.text, self.works.desk.files.seen)

    def _as_said(self, said: Sequence[Message]) -> Sequence[Message]:
        """Where the model was sent other words than the request, such as a task of it, they are not the user's."""
        request = self.record.order.text
        if said[0].text == request:
            return said
        known = any(one.run == self.record.run for one in self.shop.store.transcripts.messages(self.conversation))
        if not known:
            self._transcribe(user(request), sent_again=False)
        return (replace(said[0], automatic=True), *said[1:])

    def _keep_half(self, line: TurnInput, text: str) -> None:
        """Half an answer is kept to be shown; it is not sent again, nor is the question that it belongs to."""
        for message in (user(line.text), assistant(f"{text} [interrupted]")):
            self._transcribe(message, sent_again=False)

    def _transcribe(self, message: Message, *, reasoning: str = "", sent_again: bool = True) -> None:
        """The full reasoning stands beside the answer, to be shown and not sent again."""
        self.shop.store.transcripts.append(
            self.shop.workspace,
            self.conversation,
            message,
            run=self.record.run,
            reasoning=reasoning,
            sent_again=sent_again,
        )
