"""The steps that ask a model: each is one ordinary run, by a prompt of `prompts/spec`, that may write the specification
alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from pawl.agent.policy import prompts
from pawl.agent.session import Session
from pawl.agent.specification.analysis import analyzed
from pawl.agent.specification.spec_folder import TEMPLATES, SpecFolder, constitution, new_spec, read_text, spec_names
from pawl.agent.specification.spec_state import SpecState, documents, has_delivered, run_state
from pawl.core.errors import PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, DeliveryState, Intent, Report, RunRequest, RunState
from pawl.workspace.git import opened
from pawl.workspace.project import Project

NEEDS = {"clarify": "spec.md", "plan": "spec.md", "tasks": "plan.md", "converge": "tasks.md"}
"""The file that a step reads, which the step before it writes."""
WRITERS = {"spec.md": "specify", "plan.md": "plan", "tasks.md": "tasks"}
QUESTIONS = "questions.md"
MOST_QUESTIONS = 5
_QUESTION = re.compile(r"^\s*\d+[.)]\s+(?P<text>\S.*)$")
_ANSWER = re.compile(r"^(?P<head>\s*(?:[-*]\s+)?\*{0,2}Answer\*{0,2}:\*{0,2})[ \t]*(?P<text>.*)$", re.IGNORECASE)


def request_of(spec: SpecFolder, step: str, words: str) -> str:
    """The step as a request in the form, whose scope is the folder of the specification."""
    needed = NEEDS.get(step, "")
    if needed and not spec.has(needed):
        raise UsageError(
            f"{spec.path}/{needed} does not exist", advice=f"write it, or run 'pawl spec {WRITERS[needed]}'"
        )
    more = [words.strip()]
    name = f"{'spec' if step == 'specify' else step}-template.md"
    places = (f"{TEMPLATES}/overrides/{name}", f"{TEMPLATES}/{name}")
    more += [f"Follow the template {one}." for one in places if read_text(spec.shop, one).strip()][:1]
    more += [f"Keep to {law}."] if (law := constitution(spec.shop)) else []
    if step == "converge":
        with suppress(PawlError), opened(spec.shop.tree) as git:
            more.append(f"Head converge.md with `At {git.head().commit[:12]}`.")
        more += [f"Known already: {one.where}: {one.what}." for one in analyzed(spec)[:10]]
    text = " ".join(one for one in more if one)
    repository = prompts(spec.shop.config, spec.shop.workspace)
    # The root of all that such a run may write.
    return repository.render(f"spec/{step}", {"user_input": text, "project_root": spec.path}).strip()


def spec_for(shop: Project, idea: str) -> SpecFolder:
    """A new folder for the idea, or the one in which an interrupted run has begun to write it down."""
    new = new_spec(shop, idea)
    for name in reversed(spec_names(shop)):
        one = SpecFolder(shop=shop, name=name)
        run = SpecState.of(one).steps.get("specify", "")
        if name.partition("-")[2] == new.name.partition("-")[2] and _goes_on(one, run):
            return one
    return new


def _goes_on(spec: SpecFolder, run: str) -> bool:
    return run_state(spec, run) in (RunState.WORKING, RunState.WAITING)


def are_worked_in(spec: SpecFolder) -> bool:
    """Whether the answers are in the specification already: a kill came before their questions were closed."""
    run = SpecState.of(spec).steps.get("answers", "")
    if run_state(spec, run) is not RunState.ENDED or not has_delivered(spec, run):
        return False
    order = spec.shop.store.runs.get(spec.shop.workspace, run).order
    return order.text == request_of(spec, "answers", told_answers(spec))


def step_run(
    session: Session,
    spec: SpecFolder,
    step: str,
    order: RunRequest,
    resuming: Callable[[str], object] = lambda run: None,
) -> Report:
    """Carries out the step; one with the same request that was interrupted or waits goes on, which is told."""
    made = replace(order, intent=Intent.EDIT, approval=Approval.NEVER, accept_unverified=True)
    state, shop = SpecState.of(spec), spec.shop
    run = state.steps.get(step, "")
    if not _goes_on(spec, run) or shop.store.runs.get(shop.workspace, run).order.text != made.text:
        with shop.store.together():
            run = session.begin(made)
            state.with_step(step, run).keep(spec)
    else:
        resuming(run)
    read = documents(spec, step)
    report = session.resume(run)
    if report.delivery is DeliveryState.DONE:
        SpecState.of(spec).with_documents(read).keep(spec)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class ClarifyQuestion:
    line: int
    """Of its answer, counted from 0; -1 where there is none to write into."""
    text: str
    answer: str = ""


def questions(text: str) -> tuple[ClarifyQuestion, ...]:
    """The first questions of the file, with what was answered."""
    found: list[ClarifyQuestion] = []
    for number, line in enumerate(text.splitlines()):
        if match := _QUESTION.match(line):
            found.append(ClarifyQuestion(line=-1, text=match["text"]))
        elif found and found[-1].line < 0 and (match := _ANSWER.match(line)):
            found[-1] = replace(found[-1], line=number, answer=match["text"].strip())
    return tuple(found[:MOST_QUESTIONS])


def take_answers(spec: SpecFolder, given: Sequence[str]) -> tuple[ClarifyQuestion, ...]:
    """Writes the answers to the questions that are open, in their order; those that are open then."""
    text = spec.read(QUESTIONS)
    left = [one for one in questions(text) if not one.answer]
    plain = (" ".join(one.split()) for one in given)
    answered = [replace(one, answer=answer) for one, answer in zip(left, plain, strict=False)]
    if any(one.answer for one in answered):
        spec.write({QUESTIONS: with_answers(text, answered)}, f"answers of {spec.name}")
    return tuple(one for one in questions(spec.read(QUESTIONS)) if not one.answer)


def told_answers(spec: SpecFolder) -> str:
    """All questions with their answers; empty where nothing was asked."""
    return "\n".join(f"{one.text}\n{one.answer}" for one in questions(spec.read(QUESTIONS)))


def close_questions(spec: SpecFolder) -> None:
    """They are worked into the specification."""
    spec.write({QUESTIONS: "# Questions\n\nNone open.\n"}, f"answers of {spec.name}")


def with_answers(text: str, given: Sequence[ClarifyQuestion]) -> str:
    lines = text.splitlines()
    for one in given:
        if one.line >= 0 and (match := _ANSWER.match(lines[one.line])):
            lines[one.line] = f"{match['head']} {one.answer}".rstrip()
    return "\n".join((*lines, ""))
