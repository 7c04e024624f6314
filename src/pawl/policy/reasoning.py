"""The two forms of reasoning: what they must hold, what is wrong with a block, and what of it stays in the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from pawl.core.run import DeliveryState, ReasoningFormat, ReasoningOutcome
from pawl.policy.splitting import Split, split

SECTIONS = ("Analyze", "Research", "Plan", "Reflect", "Action", "Delivery")
LABELS = ("happened", "next", "why")
"""What the bullets of a micro block say, each at least once."""
MORE_LABELS = ("plan", "risk", "delivery")
FEWEST_BULLETS, MOST_BULLETS = 3, 8
SECTION_WORDS, BLOCK_WORDS, BULLET_WORDS = 4, 40, 3
"""Below these a section, a macro block and a bullet are thin."""
OUTCOME_CHARACTERS = 600

_SECTION = re.compile(
    r"^[ \t]*+(?:#{1,6}[ \t]*+)?(?:\d+[.)][ \t]*+)?(?:\*\*|__)?[ \t]*+(?P<name>"
    + "|".join(SECTIONS)
    + r")[ \t]*+(?::[ \t]*+(?:\*\*|__)?|(?:\*\*|__)[ \t]*+:?|(?=$))[ \t]*+(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(?P<text>.*)$")
_LABEL = re.compile(
    r"^[*_`]*(?P<label>" + "|".join((*LABELS, *MORE_LABELS)) + r")s?[*_`]*[ \t]*:[*_`]*[ \t]*(?P<text>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_STATE = re.compile(r"^[\s*_`]*(?P<state>NEEDS_WORK|DONE)\b")
_EMPTY = re.compile(r"^[\W_]*+(?:n/?a|none|nothing|tbd|todo|unknown|same as above)?[\W_]*+$", re.IGNORECASE)


class Severity(StrEnum):
    MALFORMED = "malformed"
    THIN = "thin"


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned:
    """The reasoning of an answer, taken apart."""

    form: ReasoningFormat
    raw: str
    """The inside of the block, to be stored and shown."""
    visible: str
    """The answer without it."""
    present: bool
    """There is a block, whatever its faults."""
    parts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The text of each section, or of the bullets of each label."""
    delivery: DeliveryState = DeliveryState.NEEDS_WORK
    problems: tuple[Problem, ...] = ()

    @property
    def malformed(self) -> tuple[str, ...]:
        return tuple(problem.what for problem in self.problems if problem.severity is Severity.MALFORMED)

    @property
    def thin(self) -> tuple[str, ...]:
        return tuple(problem.what for problem in self.problems if problem.severity is Severity.THIN)


def parse_macro(text: str) -> Reasoned:
    """The macro block of an answer."""
    parted = split(text)
    raw = "\n".join(parted.blocks).strip()
    found = [(match["name"].capitalize(), match) for match in _SECTION.finditer(raw)]
    parts: dict[str, str] = {}
    for place, (name, match) in enumerate(found):
        end = found[place + 1][1].start() if place + 1 < len(found) else len(raw)
        parts.setdefault(name, (match["rest"] + raw[match.end() : end]).strip())
    state = _STATE.match(parts.get("Delivery", ""))
    problems = [*_block_problems(parted), *_section_problems([name for name, _ in found], parts)]
    if "Delivery" in parts and state is None:
        problems.append(Problem(Severity.MALFORMED, "Delivery does not begin with NEEDS_WORK or DONE"))
    return Reasoned(
        form=ReasoningFormat.MACRO,
        raw=raw,
        visible=parted.visible,
        present=bool(parted.blocks),
        parts=MappingProxyType(parts),
        delivery=DeliveryState(state["state"]) if state else DeliveryState.NEEDS_WORK,
        problems=tuple(problems) if parted.blocks else _absent(),
    )


def parse_micro(text: str) -> Reasoned:
    """The micro block of an answer."""
    parted = split(text)
    raw = "\n".join(parted.blocks).strip()
    if not parted.blocks:
        return Reasoned(form=ReasoningFormat.MICRO, raw="", visible=parted.visible, present=False, problems=_absent())
    return _micro(_bullets(raw), raw=raw, visible=parted.visible, problems=_block_problems(parted))


def parse_bullets(bullets: Sequence[str], visible: str = "") -> Reasoned:
    """The micro reasoning that came as a field of a JSON answer."""
    raw = "\n".join(f"- {bullet.strip()}" for bullet in bullets)
    return _micro([bullet.strip() for bullet in bullets], raw=raw, visible=visible, problems=[])


def parse(form: ReasoningFormat, text: str) -> Reasoned:
    """The reasoning of an answer in the form that was asked for; with none asked for, all of the text is the answer."""
    match form:
        case ReasoningFormat.MACRO:
            return parse_macro(text)
        case ReasoningFormat.MICRO:
            return parse_micro(text)
        case ReasoningFormat.NONE:
            return Reasoned(form=form, raw="", visible=text.strip(), present=False)


def outcome_of(reasoned: Reasoned) -> ReasoningOutcome:
    """What stays in the history; each text is bounded and ends with a whole word."""
    parts = reasoned.parts
    macro = reasoned.form is ReasoningFormat.MACRO
    plan, action, risks = ("Plan", "Action", "Reflect") if macro else ("plan", "next", "risk")
    return ReasoningOutcome(
        plan_delta=_bounded(parts.get(plan, "")),
        next_action=_bounded(parts.get(action, "")),
        risks=_bounded(parts.get(risks, "")),
        delivery=reasoned.delivery,
    )


def _micro(bullets: Sequence[str], *, raw: str, visible: str, problems: list[Problem]) -> Reasoned:
    labelled: dict[str, list[str]] = {}
    for bullet in bullets:
        match = _LABEL.match(bullet)
        text = match["text"].strip() if match else bullet
        labelled.setdefault(match["label"].lower() if match else "", []).append(text)
    parts = {label: "\n".join(texts) for label, texts in labelled.items()}
    state = _STATE.match(parts.get("delivery", ""))
    return Reasoned(
        form=ReasoningFormat.MICRO,
        raw=raw,
        visible=visible,
        present=True,
        parts=MappingProxyType(parts),
        delivery=DeliveryState(state["state"]) if state else DeliveryState.NEEDS_WORK,
        problems=(*problems, *_bullet_problems(bullets, labelled)),
    )


def _bullets(raw: str) -> list[str]:
    """Each bullet with the lines that go on with it."""
    bullets: list[str] = []
    for line in raw.splitlines():
        match = _BULLET.match(line)
        if match:
            bullets.append(match["text"].strip())
        elif bullets and line.strip():
            bullets[-1] += f" {line.strip()}"
    return bullets


def _absent() -> tuple[Problem, ...]:
    return (Problem(Severity.MALFORMED, "there is no <reasoning> block"),)


def _block_problems(parted: Split) -> list[Problem]:
    found = []
    if not parted.closed:
        found.append(Problem(Severity.MALFORMED, "the block is not closed with </reasoning>"))
    if len(parted.blocks) > 1:
        found.append(Problem(Severity.MALFORMED, f"{len(parted.blocks)} blocks where one was asked for"))
    return found


def _section_problems(names: Sequence[str], parts: Mapping[str, str]) -> Iterator[Problem]:
    missing = [name for name in SECTIONS if name not in names]
    if missing:
        yield Problem(Severity.MALFORMED, f"missing sections: {', '.join(missing)}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield Problem(Severity.MALFORMED, f"sections that occur more than once: {', '.join(repeated)}")
    thin = [name for name in SECTIONS[:-1] if name in parts and _says_little(parts[name], SECTION_WORDS)]
    if thin:
        yield Problem(Severity.THIN, f"sections that say too little: {', '.join(thin)}")
    words = sum(len(text.split()) for text in parts.values())
    if not missing and not thin and words < BLOCK_WORDS:
        yield Problem(Severity.THIN, f"{words} words in all, where at least {BLOCK_WORDS} were expected")
    said = [text for name, text in parts.items() if name in SECTIONS[:-1]]
    if len(set(said)) < len(said):
        yield Problem(Severity.THIN, "sections repeat each other")


def _bullet_problems(bullets: Sequence[str], labelled: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    if not FEWEST_BULLETS <= len(bullets) <= MOST_BULLETS:
        yield Problem(Severity.MALFORMED, f"{len(bullets)} bullets where {FEWEST_BULLETS} to {MOST_BULLETS} belong")
    missing = [f"{label}:" for label in LABELS if label not in labelled]
    if missing:
        yield Problem(Severity.MALFORMED, f"no bullet begins with {', '.join(missing)}")
    thin = [label for label in LABELS if any(_says_little(text, BULLET_WORDS) for text in labelled.get(label, ()))]
    if thin:
        yield Problem(Severity.THIN, f"bullets that say too little: {', '.join(thin)}")


def _says_little(text: str, words: int) -> bool:
    return bool(_EMPTY.match(text)) or len(text.split()) < words


def _bounded(text: str) -> str:
    if len(text) <= OUTCOME_CHARACTERS:
        return text
    cut = text[:OUTCOME_CHARACTERS]
    return (cut[: max(cut.rfind(" "), cut.rfind("\n"))].rstrip() if re.search(r"\s", cut) else cut) + " …"
