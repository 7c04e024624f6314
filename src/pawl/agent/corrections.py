"""Corrections: faults of an answer that send it back with a prompt, bounded, and with no word on the mode."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from pawl.agent.reasoning import ProblemSeverity, Reasoned, ReasoningProblem, decoded, json_object, parse, parse_bullets
from pawl.core.dialogue import ModelResponse, StopReason
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import DeliveryState, PolicyDecision, ReasoningFormat, Stage
from pawl.core.typed import data_table
from pawl.settings.permission_rules import ToolKind, allowances

TAIL_SENTENCES = 2
"""A promise counts when it is the last thing said."""
LONGEST = 20_000
"""Characters at the end of an answer that are looked at."""

_CODE = re.compile(r"^ {0,3}(```+|~~~+)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|^>[^\n]*$", re.MULTILINE)
_BREAK = re.compile(r"(?<=[.!?:])\s+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The patterns of one fault."""

    patterns: re.Pattern[str]
    exceptions: re.Pattern[str]
    admissions: re.Pattern[str]
    verbs: Mapping[ToolKind, re.Pattern[str]]


def asks_for_files(text: str) -> bool:
    """It asks the user for files or diffs, or says that it cannot see them."""
    return any(_said(_phrases()["asks_for_files"], sentence) for sentence in sentences(text))


def claims_done(text: str) -> bool:
    """It says that the work is finished, and nowhere that something is open."""
    phrases, said = _phrases()["claims_done"], sentences(text)
    claimed = any(_said(phrases, sentence) for sentence in said)
    return claimed and not any(phrases.admissions.search(sentence) for sentence in said)


def promises(text: str) -> frozenset[ToolKind]:
    """The kinds of call that the end of the text announces without a condition."""
    phrases, tail = _phrases()["promised_call"], sentences(text)[-TAIL_SENTENCES:]
    if any(phrases.exceptions.search(sentence) for sentence in tail):
        return frozenset()
    verbs = [match["verb"] for sentence in tail if (match := phrases.patterns.search(sentence))]
    kinds = {kind for kind, pattern in phrases.verbs.items() if any(pattern.fullmatch(verb) for verb in verbs)}
    # An answer that ends with code shows what it announced to look at.
    shown = text.rstrip().endswith(("```", "~~~"))
    return frozenset(kinds - {ToolKind.READS} if shown else kinds)


def sentences(text: str) -> list[str]:
    """The sentences of the prose, with plain apostrophes."""
    prose = _QUOTED.sub(" it ", _CODE.sub("\n", text[-LONGEST:].replace("’", "'")))
    stripped = (part.strip().lstrip("-*#•> ").strip("*_ ") for part in _BREAK.split(prose))
    return [part for part in stripped if part]


def examples() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each fault, texts that have it and texts that do not."""
    file = data_table("pawl.agent", "phrases.toml")
    return {name: (tuple(file[name]["faults"]), tuple(file[name]["innocent"])) for name in file if name != "words"}


def _said(phrases: Phrases, sentence: str) -> bool:
    return phrases.patterns.search(sentence) is not None and phrases.exceptions.search(sentence) is None


@functools.cache
def _phrases() -> Mapping[str, Phrases]:
    file = data_table("pawl.agent", "phrases.toml")
    thing = file["words"]["thing"]
    return {
        name: Phrases(
            patterns=_any(row["patterns"], thing),
            exceptions=_any(row["exceptions"], thing),
            admissions=_any(row.get("admissions", ()), thing),
            verbs={ToolKind(kind): _verb(stems) for kind, stems in row.get("verbs", {}).items()},
        )
        for name, row in file.items()
        if name != "words"
    }


def _any(patterns: Sequence[str], thing: str) -> re.Pattern[str]:
    """No pattern at all matches nothing."""
    joined = "|".join(pattern.replace("<thing>", thing) for pattern in patterns)
    return re.compile(joined or r"(?!)", re.IGNORECASE)


def _verb(stems: Sequence[str]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(stems)})(?:e|ing|ning|ting)?", re.IGNORECASE)


MOST_PER_REQUEST = 4
"""Over all corrections, so that no pair of faults alternates for ever."""
_SAME = {"claims_done", "warmed_up"}
"""Corrections that have told already that nothing was done."""
FIELD = "reasoning"
"""Where an answer in JSON has its reasoning."""
_NO_FIELD = (ReasoningProblem(ProblemSeverity.MALFORMED, f"the field {FIELD!r} is missing"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    name: str
    told: str
    """The fault, for the user."""
    prompt: str
    limit: int
    stages: frozenset[Stage]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSituation:
    """The situation in which an answer came."""

    stage: Stage
    decision: PolicyDecision
    work_left: tuple[str, ...] = ()
    """Open demands of verification or delivery check, by the run's own record."""
    owes_change: bool = False
    """The user's words ask for a change, and nothing was done yet."""
    read: tuple[str, ...] = ()
    """Files that were read for an answer which has to cite them; empty where nothing has to be cited."""
    sent: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """How often each correction was sent in this request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFault:
    correction: Correction
    why: str
    """For the prompt's `last_step_outcome` and for the log."""


@functools.cache
def corrections() -> Mapping[str, Correction]:
    """By name, in the order in which they are looked for."""
    file = data_table("pawl.agent", "corrections.toml")
    return MappingProxyType(
        {
            name: Correction(
                name=name,
                told=row["told"],
                prompt=row["prompt"],
                limit=row["limit"],
                stages=frozenset(map(Stage, row.get("stages", Stage))),
            )
            for name, row in file.items()
        }
    )


def may_send(correction: Correction, situation: AnswerSituation) -> bool:
    """Whether the request's bounds leave room for it."""
    spent = situation.sent.get(correction.name, 0)
    return spent < correction.limit and sum(situation.sent.values()) < MOST_PER_REQUEST


def fault_of(answer: ModelResponse, situation: AnswerSituation) -> AnswerFault | None:
    """The first fault of the answer that may still be corrected. What a provider refused is not argued with."""
    if answer.stop is StopReason.REFUSED:
        return None
    seen = _Seen(answer, situation)
    for name, detect in _DETECTORS.items():
        correction = corrections()[name]
        if situation.stage in correction.stages and may_send(correction, situation):
            why = detect(seen)
            if why:
                return AnswerFault(correction=correction, why=why)
    return None


def reasoning_of(answer: ModelResponse, decision: PolicyDecision) -> Reasoned:
    """The reasoning of an answer, in a block or, where the answer has a contract, in its field.

    What is visible of an answer with a contract is its JSON without that field.
    """
    if not decision.contract or decision.reasoning is ReasoningFormat.NONE:
        return parse(decision.reasoning, answer.text)
    fields = decoded(json_object(answer.text))
    if fields is None or FIELD not in fields:
        return Reasoned(form=decision.reasoning, raw="", visible=answer.text.strip(), present=False, problems=_NO_FIELD)
    given = fields.pop(FIELD)
    bullets = [str(bullet) for bullet in given] if isinstance(given, list) else [str(given)]
    return parse_bullets(bullets, json.dumps(fields, ensure_ascii=False))


class _Seen:
    """An answer with what several detectors look at."""

    def __init__(self, answer: ModelResponse, situation: AnswerSituation) -> None:
        self.answer = answer
        self.decision = situation.decision
        self.work_left = situation.work_left
        self.owes_change = situation.owes_change and not situation.sent.keys() & _SAME
        self.read = situation.read
        self.reasoned = reasoning_of(answer, situation.decision)

    @property
    def visible(self) -> str:
        return self.reasoned.visible

    @property
    def in_words(self) -> bool:
        """An answer that is meant to be read, as opposed to one that calls tools or fills a schema."""
        return not self.answer.calls and not self.decision.contract


def _empty(seen: _Seen) -> str:
    answer = seen.answer
    blank = not answer.text.strip() and not answer.calls and not any(one.text.strip() for one in answer.thoughts)
    return "the answer was empty" if blank else ""


def _reasoning_malformed(seen: _Seen) -> str:
    """Absent reasoning counts only where it is required, and what is not JSON at all is the contract's affair."""
    if not (seen.reasoned.present or seen.decision.reasoning_required):
        return ""
    if seen.decision.contract and decoded(json_object(seen.answer.text)) is None:
        return ""
    return "\n".join(seen.reasoned.malformed)


def _reasoning_only(seen: _Seen) -> str:
    thought = seen.reasoned.present or any(one.text.strip() for one in seen.answer.thoughts)
    alone = thought and not seen.visible and not seen.answer.calls
    return "there was reasoning and no answer" if alone else ""


def _reasoning_thin(seen: _Seen) -> str:
    return "\n".join(seen.reasoned.thin) if seen.reasoned.present else ""


def _claims_done(seen: _Seen) -> str:
    if not seen.work_left or seen.answer.calls:
        return ""
    stated = seen.reasoned.delivery is DeliveryState.DONE
    if seen.decision.contract:
        stated = stated or _state(seen.visible) == DeliveryState.DONE
    else:
        stated = stated or claims_done(seen.visible)
    return "\n".join(f"- {item}" for item in seen.work_left) if stated else ""


def _asks_for_files(seen: _Seen) -> str:
    readable = _kinds(seen.decision) & {ToolKind.READS, ToolKind.RUNS}
    asked = seen.in_words and readable and asks_for_files(seen.visible)
    return "the user was asked for what the tools can read" if asked else ""


def _promised_call(seen: _Seen) -> str:
    """Only what the tools of the stage can keep counts: a promise beyond them is not to be insisted on."""
    kept = seen.in_words and promises(seen.visible) & _kinds(seen.decision)
    return f"a call was announced and not made ({', '.join(sorted(kept))})" if kept else ""


def _uncited(seen: _Seen) -> str:
    """An answer that names the files without lines is taken: small models count badly, and a wrong line is worse."""
    silent = seen.in_words and seen.read and not any(path in seen.visible for path in seen.read)
    return "\n".join(f"- {path}" for path in seen.read) if silent else ""


def _warmed_up(seen: _Seen) -> str:
    """The first look obeyed its prompt and ended in words; where something is to be done, the work comes now."""
    return "nothing was done yet" if seen.in_words and "modes/agent" in seen.decision.prompts else ""


def _nothing_changed(seen: _Seen) -> str:
    return "nothing was changed" if seen.in_words and seen.owes_change else ""


_DETECTORS: Mapping[str, Callable[[_Seen], str]] = MappingProxyType(
    {
        "empty_answer": _empty,
        "reasoning_malformed": _reasoning_malformed,
        "reasoning_only": _reasoning_only,
        "reasoning_thin": _reasoning_thin,
        "claims_done": _claims_done,
        "asks_for_files": _asks_for_files,
        "promised_call": _promised_call,
        "uncited": _uncited,
        "warmed_up": _warmed_up,
        "nothing_changed": _nothing_changed,
    }
)


def _kinds(decision: PolicyDecision) -> frozenset[ToolKind]:
    known = allowances().tools
    return frozenset(known[tool] for tool in decision.tools if tool in known)


def _state(text: str) -> object:
    return (decoded(json_object(text)) or {}).get("state")
