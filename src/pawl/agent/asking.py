"""A question about the workspace, answered in chat mode: reading tools only, one budget, every request on record."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from pawl.agent.briefing import BundleSubject, handed_over
from pawl.agent.context import LoopEnd, Spoken
from pawl.agent.context_builder import (
    ContextBuilder,
    Listener,
    configured,
    line_count,
    mentioned,
    read_ahead,
    standing_context,
)
from pawl.agent.context_watch import ContextWatch
from pawl.agent.loop import converse
from pawl.agent.own_extensions import own_form
from pawl.agent.policy import Policy, model_of, policy_of, prompt_folders
from pawl.agent.replay import ReplayLog, TapedTools, refusal_of
from pawl.agent.tools.toolbox import ToolSession
from pawl.core.dialogue import FellBack, Message, TextDelta, Usage, assistant, user
from pawl.core.errors import AnswerInterrupted, StoreError, UnknownEntry, UsageError
from pawl.core.events import ReasoningShown, RequestAnswered, RunEvent, Warned
from pawl.core.memory import KeptAnswer
from pawl.core.run import Mode, Reasoning, RoleName, RunTerms
from pawl.models.configuration import ModelConfig, budget
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.settings import files as bounded
from pawl.settings.permissions import permissions_of, permit_of, unasked
from pawl.settings.project_files import files_of
from pawl.workspace.project import Project

_CITED = re.compile(
    r"(?<![\w./-])(?P<path>(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,9}|(?:[\w.@+-]+/)+[\w.@+-]+):(?P<line>\d{1,7})\b"
)
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    path: str
    line: int
    holds: bool
    """There is such a file, and it has that line."""


def citations(text: str, count_lines: Callable[[str], int | None]) -> tuple[Citation, ...]:
    """Every `path:line` of the text, once. `count_lines` is None for what is not a file of the workspace."""
    counted: dict[str, int | None] = {}
    found: dict[tuple[str, int], Citation] = {}
    for path, line in _places(text):
        if path not in counted:
            counted[path] = count_lines(path)
        lines = counted[path]
        holds = lines is not None and 1 <= line <= max(1, lines)
        found.setdefault((path, line), Citation(path=path, line=line, holds=holds))
        if len(found) >= _MOST:
            break
    return tuple(found.values())


def _places(text: str) -> Iterator[tuple[str, int]]:
    for match in _CITED.finditer(text):
        # An address such as localhost.example:8080 is no file.
        if not text[max(0, match.start() - 3) : match.start()].endswith("://"):
            yield match["path"].removeprefix("./"), int(match["line"])


_SCRIPT = "scripted:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShelf:
    """The answers to one question. Losing one costs a request, so that trouble with the store is passed over."""

    shop: Project
    asked_of: str
    query: str

    @classmethod
    def of(cls, shop: Project, terms: RunTerms, text: str, told: Sequence[str]) -> AnswerShelf | None:
        """`told` is what the model is told beside its prompts: with other memories it may answer otherwise.

        None when an extension of the user's says that the answer is not to be kept.
        """
        from pawl.agent.answers import normalised

        form = own_form(shop.config, text)
        if form is None:
            return None
        parts = [terms.model, terms.reasoning, shop.config.settings.detail, _script(terms.model), *told]
        extensions = shop.config.tables.extensions
        parts += [*_own_prompts(shop), *(str(extensions[name]) for name in ("answers", "tools") if name in extensions)]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        return cls(shop=shop, asked_of=f"{terms.model} {digest[:16]}", query=normalised(form))

    @property
    def known(self) -> Sequence[KeptAnswer]:
        with suppress(StoreError):
            return self.shop.store.answers.find(self.shop.workspace, self.asked_of, self.query)
        return ()

    def standing(self, desk: ToolSession) -> KeptAnswer | None:
        """The one that still holds."""
        from pawl.agent.answers import still_holds

        for answer in self.known:
            if still_holds(desk.files, answer.rests):
                with suppress(StoreError):
                    self.shop.store.answers.use(answer.id)
                return answer
        return None

    def keep(self, text: str, desk: ToolSession) -> None:
        """Keeps an answer from these files; one that rests on nothing is not about the code."""
        from pawl.agent.answers import are_similar

        rests = desk.files.rests()
        if not rests:
            return
        answer = KeptAnswer(query=self.query, asked_of=self.asked_of, text=text, rests=rests)
        with suppress(StoreError):
            self.shop.store.answers.keep(self.shop.workspace, answer, are_similar)


def _own_prompts(shop: Project) -> list[str]:
    """The prompts that the user or the workspace overrides: with others the model may answer otherwise."""
    found = []
    for folder in prompt_folders(shop.config, shop.workspace):
        for _, source, read in files_of(folder, ".md"):
            # One that cannot be read stops the question with its name.
            with suppress(OSError, UnicodeDecodeError):
                found.append(f"{source}\0{read()}")
    return found


def _script(model: str) -> str:
    """What a script says is the model; another text is another one."""
    return _digest(model.removeprefix(_SCRIPT)) if model.startswith(_SCRIPT) else ""


def _digest(path: str) -> str:
    """Of a file's content; empty for one that cannot be read, which is told where it is used."""
    with suppress(OSError):
        return hashlib.sha256(bounded.read_bytes(path, bounded.LARGEST_DATA)).hexdigest()
    return ""


HANDED = "handed"
"""The snapshot of a conversation that holds what the librarian handed over at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    text: str
    model: str = ""
    reasoning: Reasoning | None = None
    """The setting when None."""
    budget: Mapping[str, object] = field(default_factory=dict)
    conversation: str = ""
    """An earlier one to go on with."""
    new_conversation: str = ""
    """The id of a new one; chosen here when empty."""
    heard: Callable[[], tuple[str, ...]] = tuple
    """What the user says while it is answered."""
    latest: bool = False
    """Go on with the latest of the workspace."""
    record: Path | None = None
    cache: bool = True
    """An answer that was given before and still holds will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    spoken: Spoken
    model: str
    """The one that answered, which may be a fallback."""
    asked_model: str
    run: str
    conversation: str
    citations: tuple[Citation, ...]
    notice: str = ""
    cached: str = ""
    """When the answer was first given, if it was given before; no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """A question that a model is asked, with all that is settled before."""

    shop: Project
    question: AskRequest
    config: ModelConfig
    policy: Policy
    terms: RunTerms
    desk: ToolSession
    history: tuple[Message, ...]
    told: tuple[str, ...]
    """Instructions, memories and the memory bank."""
    shelf: AnswerShelf | None
    """Where the answer is kept; None when it is not to be."""


def ask(shop: Project, question: AskRequest, listen: Listener, cancel: CancelToken | None = None) -> Replied:
    """Answers the question from the files of the workspace."""
    if not question.text.strip():
        raise UsageError("there is no question", advice="pawl ask 'where is the configuration read?'")
    config = configured(shop, question.model)
    config = replace(config, budget=budget(question.budget, config.budget))
    policy = policy_of(shop.config, shop.workspace)
    conversation = _conversation(shop, question)
    history = _history(shop, conversation)
    terms = RunTerms(
        run=shop.run_id,
        conversation=conversation,
        mode=Mode.CHAT,
        reasoning=question.reasoning or Reasoning(shop.config.settings.reasoning),
        model=model_of(config, policy.role(RoleName.ARTISAN)),
    )
    with ToolSession(shop, cancel) as desk:
        told = standing_context(shop, desk, question.text, listen)
        shelf = None
        if question.cache and not history and question.record is None:
            shelf = AnswerShelf.of(shop, terms, question.text, told)
            replied = None if shelf is None else _again(shop, terms, desk, question.text, shelf, listen)
            if replied is not None:
                return replied
        asking = _Asking(
            shop=shop,
            question=question,
            config=config,
            policy=policy,
            terms=terms,
            desk=desk,
            history=history,
            told=told,
            shelf=shelf,
        )
        return _ask_model(asking, listen, cancel)


@dataclass(slots=True)
class _Heard:
    """What is kept of the events of a talk."""

    model: str
    """The one that answered last."""
    thoughts: list[str] = field(default_factory=list)
    fell_back: bool = False

    def take(self, event: RunEvent) -> None:
        match event:
            case ReasoningShown(text=text):
                self.thoughts.append(text)
            case FellBack():
                self.fell_back = True
            case RequestAnswered(model=model):
                self.model = model


def _ask_model(asking: _Asking, listen: Listener, cancel: CancelToken | None) -> Replied:
    shop, question, terms, desk = asking.shop, asking.question, asking.terms, asking.desk
    heard = _Heard(model=terms.model)
    with (
        Models(asking.config, record=question.record, warn=lambda text: listen(Warned(text))) as models,
        Telemetry.open(asking.config.environment) as telemetry,
    ):
        watch = ContextWatch(shop, terms, models.reads(terms.model))
        watch.begin(question.text)

        def hear(event: RunEvent) -> None:
            heard.take(event)
            listen(event)

        builder = ContextBuilder(
            shop=shop,
            policy=asking.policy,
            terms=terms,
            models=models,
            telemetry=telemetry,
            desk=desk,
            limits=asking.config.budget,
            cancel=cancel,
        )
        context = (*asking.told, *_handed_over(asking))
        seat = builder.build(RoleName.ARTISAN, watch, context=context, listen=hear)
        seat = replace(seat, tools=_ruled(shop, desk), heard=question.heard)
        try:
            spoken = converse(seat, asking.history, question.text, read=read_ahead(desk.files, question.text))
        except AnswerInterrupted as error:
            _keep_interrupted(shop, terms, question.text, error.text)
            raise
        if spoken.ended is not LoopEnd.EMPTY:
            _keep(shop, terms, spoken.said, heard.thoughts)
        cited = citations(spoken.text, lambda path: line_count(desk.files, path))
        # What another model said in the place of this one is not kept as its answer.
        if (
            asking.shelf
            and not heard.fell_back
            and spoken.ended is LoopEnd.ANSWERED
            and all(one.holds for one in cited)
        ):
            asking.shelf.keep(spoken.text, desk)
        watch.keep(question.text, spoken.text, desk.files.seen)
    return Replied(
        spoken=replace(spoken, cost=_cost(models)),
        model=heard.model,
        asked_model=terms.model,
        run=terms.run,
        conversation=terms.conversation,
        citations=cited,
        notice=telemetry.notice,
    )


def _handed_over(asking: _Asking) -> tuple[str, ...]:
    """Code that the question may be about; a conversation keeps what it began with, so that caches hold."""
    shop, text, conversation = asking.shop, asking.question.text, asking.terms.conversation
    if asking.history:
        kept = shop.store.snapshots.get(shop.workspace, conversation, HANDED) or {}
        known = kept.get("texts")
        return tuple(map(str, known)) if isinstance(known, list) else ()
    subject = BundleSubject(request=text, named=tuple(mentioned(text)), patient=False)
    texts = handed_over(shop, asking.desk.files, subject)
    if texts:
        shop.store.snapshots.put(shop.workspace, conversation, HANDED, {"texts": list(texts)})
    return texts


def _ruled(shop: Project, desk: ToolSession) -> TapedTools:
    """The tools under the permission rules, where nobody can be asked."""
    permit = unasked(permit_of(permissions_of(shop.config, shop.workspace, mode=Mode.CHAT), shop.guardrails))

    def permitted(step: int, name: str, arguments: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        said = permit(name, arguments)
        return ("" if said.allowed else refusal_of(said)), arguments

    return TapedTools(
        desk, ReplayLog([], lambda number, body: None), keep=lambda tool, write: write(), permit=permitted
    )


def _cost(models: Models) -> Decimal | None:
    """With what went to attempts that failed, and to a model that another took over from; None if it is unknown."""
    spent = models.router.ledger.spent
    return None if spent.unpriced_tokens else spent.money


def _again(
    shop: Project, terms: RunTerms, desk: ToolSession, asked: str, shelf: AnswerShelf, listen: Listener
) -> Replied | None:
    """The answer that was given before, if it still holds; it becomes part of a conversation like any other."""
    if not shelf.known:
        return None
    kept = shelf.standing(desk)
    if kept is None:
        return None
    cited = citations(kept.text, lambda path: line_count(desk.files, path))
    seen = desk.files.seen
    said = (user(asked), assistant(kept.text))
    _keep(shop, terms, said, [])
    ContextWatch(shop, terms).keep(asked, kept.text, seen)
    listen(TextDelta(kept.text))
    spoken = Spoken(
        text=kept.text, ended=LoopEnd.ANSWERED, messages=said, said=said, requests=0, usage=Usage(), cost=Decimal(0)
    )
    return Replied(
        spoken=spoken,
        model=terms.model,
        asked_model=terms.model,
        run=terms.run,
        conversation=terms.conversation,
        citations=cited,
        cached=kept.created,
    )


def _conversation(shop: Project, question: AskRequest) -> str:
    if question.conversation:
        if all(one.id != question.conversation for one in shop.store.transcripts.conversations(shop.workspace)):
            raise UnknownEntry(
                f"there is no conversation {question.conversation!r} in this workspace",
                advice="its id stands in the JSON of 'pawl ask'; -c goes on with the last one",
            )
        return question.conversation
    if question.latest:
        known = shop.store.transcripts.conversations(shop.workspace, limit=1)
        if not known:
            raise UnknownEntry("there is no conversation to go on with", advice="ask without -c first")
        return known[0].id
    return question.new_conversation or f"c{secrets.token_hex(4)}"


def _history(shop: Project, conversation: str) -> tuple[Message, ...]:
    return tuple(said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again)


def _keep(shop: Project, terms: RunTerms, said: tuple[Message, ...], thoughts: list[str]) -> None:
    """Keeps what was said; the full reasoning stands beside the last answer, to be shown and not sent again."""
    for place, message in enumerate(said):
        reasoning = "\n\n".join(thoughts) if place == len(said) - 1 else ""
        shop.store.transcripts.append(shop.workspace, terms.conversation, message, run=terms.run, reasoning=reasoning)


def _keep_interrupted(shop: Project, terms: RunTerms, asked: str, text: str) -> None:
    """Half an answer is kept to be shown; it is not sent again, nor is the question that it belongs to."""
    for message in (user(asked), assistant(f"{text} [interrupted]")):
        shop.store.transcripts.append(shop.workspace, terms.conversation, message, run=terms.run, sent_again=False)
