"""The two forms of reasoning: what they must hold, what is wrong with a block, and what of it stays in the history."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType

from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import DeliveryState, ReasoningFormat, ReasoningOutcome

OPEN = "<reasoning>"
CLOSE = "</reasoning>"
_INDENT = 3
"""Spaces that may stand before a tag or a fence, as in Markdown."""
_FENCES = ("```", "~~~")
_LONGEST_FENCE = 200
"""A longer line opens no code, so that little is held back."""


class AnswerPart(StrEnum):
    REASONING = "reasoning"
    VISIBLE = "visible"


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    part: AnswerPart
    text: str
    block: int = 0
    """The number of the block, from 1; 0 for what is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An answer in its two parts."""

    blocks: tuple[str, ...]
    """The inside of each block."""
    visible: str
    closed: bool
    """False when the answer ended inside a block."""


class ReasoningSplitter:
    """Takes an answer delta by delta and says of each piece which part it belongs to."""

    def __init__(self) -> None:
        self._held = ""
        """Text that cannot be judged before more arrives."""
        self._at_line_start = True
        self._fence = ""
        """The fence that opened the code that the visible text is in."""
        self._inside = False
        self._skipping = True
        """White space before the first visible word, and after a block, is dropped."""
        self.blocks = 0

    @property
    def inside(self) -> bool:
        return self._inside

    def feed(self, delta: str) -> tuple[AnswerPiece, ...]:
        pieces: list[AnswerPiece] = []
        # Line by line, so that the time does not grow with the square of the length.
        for line in delta.splitlines(keepends=True):
            self._held += line
            self._drain(pieces, more=True)
        return _merged(pieces)

    def finish(self) -> tuple[AnswerPiece, ...]:
        """Release the text that was held back, once nothing more arrives."""
        pieces: list[AnswerPiece] = []
        self._drain(pieces, more=False)
        return _merged(pieces)

    def _drain(self, pieces: list[AnswerPiece], *, more: bool) -> None:
        while self._held:
            before = len(self._held)
            piece = self._reasoning(more=more) if self._inside else self._visible(more=more)
            if piece is not None:
                pieces.append(piece)
            elif len(self._held) == before:
                return

    def _reasoning(self, *, more: bool) -> AnswerPiece | None:
        """The next piece of the block; the closing tag itself gives none."""
        held = self._held
        place = held.lower().find(CLOSE)
        if place == 0:
            self._held = held[len(CLOSE) :]
            self._inside, self._skipping, self._at_line_start = False, True, True
            return None
        if place > 0:
            taken = place
        else:
            taken = len(held) - (_overlap(held, CLOSE) if more else 0)
        return self._take(AnswerPart.REASONING, taken)

    def _visible(self, *, more: bool) -> AnswerPiece | None:
        if self._skipping:
            self._skip()
            if not self._held:
                return None
        if self._at_line_start:
            return self._line_start(more=more)
        end = self._held.find("\n") + 1
        if end:
            self._at_line_start = True
        return self._take(AnswerPart.VISIBLE, end or len(self._held))

    def _skip(self) -> None:
        rest = self._held.lstrip()
        if "\n" in self._held[: len(self._held) - len(rest)]:
            self._at_line_start = True
        self._held = rest
        self._skipping = not rest

    def _line_start(self, *, more: bool) -> AnswerPiece | None:
        """Decides what the line opens, once enough of it is there."""
        held = self._held
        word = held.lstrip(" ")
        indent = len(held) - len(word)
        if indent <= _INDENT:
            if not self._fence and word[: len(OPEN)].lower() == OPEN:
                self._held = word[len(OPEN) :]
                self._inside = True
                self.blocks += 1
                return None
            if more and self._undecided(word):
                return None
            self._note_fence(word)
        self._at_line_start = False
        return self._take(AnswerPart.VISIBLE, indent) if indent else self._visible(more=more)

    def _undecided(self, word: str) -> bool:
        """Whether more could make a tag or a fence of the line; a fence is known by all of its line."""
        if any(fence.startswith(word[: len(fence)]) for fence in _FENCES):
            return "\n" not in word and len(word) <= _LONGEST_FENCE
        return not self._fence and OPEN.startswith(word.lower())

    def _note_fence(self, word: str) -> None:
        line = word.partition("\n")[0]
        mark = next((fence[0] for fence in _FENCES if line.startswith(fence)), "")
        if not mark or len(line) > _LONGEST_FENCE:
            return
        run = line[: len(line) - len(line.lstrip(mark))]
        if not self._fence and "`" not in line[len(run) :]:
            self._fence = run
        elif line.rstrip() == run and run.startswith(self._fence):
            self._fence = ""

    def _take(self, part: AnswerPart, count: int) -> AnswerPiece | None:
        text, self._held = self._held[:count], self._held[count:]
        return AnswerPiece(part, text, self.blocks if part is AnswerPart.REASONING else 0) if text else None


def split(text: str) -> Split:
    """A whole answer in its two parts."""
    splitter = ReasoningSplitter()
    pieces = _merged([*splitter.feed(text), *splitter.finish()])
    blocks = {piece.block: piece.text for piece in pieces}
    return Split(
        blocks=tuple(blocks.get(number, "") for number in range(1, splitter.blocks + 1)),
        visible="".join(piece.text for piece in pieces if piece.part is AnswerPart.VISIBLE).rstrip(),
        closed=not splitter.inside,
    )


def _merged(pieces: Iterable[AnswerPiece]) -> tuple[AnswerPiece, ...]:
    """Neighbours of one part and block as one piece."""
    groups = itertools.groupby(pieces, key=lambda piece: (piece.part, piece.block))
    return tuple(AnswerPiece(part, "".join(piece.text for piece in group), block) for (part, block), group in groups)


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    tail = text[-len(tag) + 1 :].lower()
    return next((len(tail) - place for place in range(len(tail)) if tag.startswith(tail[place:])), 0)


SECTIONS = ("Analyze", "Research", "Plan", "Reflect", "Action", "Delivery")
LABELS = ("happened", "next", "why")
"""The bullets of a micro block, each at least once."""
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


class ProblemSeverity(StrEnum):
    MALFORMED = "malformed"
    THIN = "thin"


@dataclass(frozen=True, slots=True)
class ReasoningProblem:
    severity: ProblemSeverity
    what: str


def _malformed(what: str) -> ReasoningProblem:
    return ReasoningProblem(ProblemSeverity.MALFORMED, what)


def _thin(what: str) -> ReasoningProblem:
    return ReasoningProblem(ProblemSeverity.THIN, what)


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
    problems: tuple[ReasoningProblem, ...] = ()

    @property
    def malformed(self) -> tuple[str, ...]:
        return tuple(problem.what for problem in self.problems if problem.severity is ProblemSeverity.MALFORMED)

    @property
    def thin(self) -> tuple[str, ...]:
        return tuple(problem.what for problem in self.problems if problem.severity is ProblemSeverity.THIN)


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
        problems.append(_malformed("Delivery does not begin with NEEDS_WORK or DONE"))
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
    """The part that stays in the history; each text is bounded and ends with a whole word."""
    parts = reasoned.parts
    macro = reasoned.form is ReasoningFormat.MACRO
    plan, action, risks = ("Plan", "Action", "Reflect") if macro else ("plan", "next", "risk")
    return ReasoningOutcome(
        plan_delta=_bounded(parts.get(plan, "")),
        next_action=_bounded(parts.get(action, "")),
        risks=_bounded(parts.get(risks, "")),
        delivery=reasoned.delivery,
    )


def _micro(bullets: Sequence[str], *, raw: str, visible: str, problems: list[ReasoningProblem]) -> Reasoned:
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


def _absent() -> tuple[ReasoningProblem, ...]:
    return (_malformed("there is no <reasoning> block"),)


def _block_problems(parted: Split) -> list[ReasoningProblem]:
    found = []
    if not parted.closed:
        found.append(_malformed("the block is not closed with </reasoning>"))
    if len(parted.blocks) > 1:
        found.append(_malformed(f"{len(parted.blocks)} blocks where one was asked for"))
    return found


def _section_problems(names: Sequence[str], parts: Mapping[str, str]) -> Iterator[ReasoningProblem]:
    missing = [name for name in SECTIONS if name not in names]
    if missing:
        yield _malformed(f"missing sections: {', '.join(missing)}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield _malformed(f"sections that occur more than once: {', '.join(repeated)}")
    thin = [name for name in SECTIONS[:-1] if name in parts and _says_little(parts[name], SECTION_WORDS)]
    if thin:
        yield _thin(f"sections that say too little: {', '.join(thin)}")
    words = sum(len(text.split()) for text in parts.values())
    if not missing and not thin and words < BLOCK_WORDS:
        yield _thin(f"{words} words in all, where at least {BLOCK_WORDS} were expected")
    said = [text for name, text in parts.items() if name in SECTIONS[:-1]]
    if len(set(said)) < len(said):
        yield _thin("sections repeat each other")


def _bullet_problems(bullets: Sequence[str], labelled: Mapping[str, Sequence[str]]) -> Iterator[ReasoningProblem]:
    if not FEWEST_BULLETS <= len(bullets) <= MOST_BULLETS:
        yield _malformed(f"{len(bullets)} bullets where {FEWEST_BULLETS} to {MOST_BULLETS} belong")
    missing = [f"{label}:" for label in LABELS if label not in labelled]
    if missing:
        yield _malformed(f"no bullet begins with {', '.join(missing)}")
    thin = [label for label in LABELS if any(_says_little(text, BULLET_WORDS) for text in labelled.get(label, ()))]
    if thin:
        yield _thin(f"bullets that say too little: {', '.join(thin)}")


def _says_little(text: str, words: int) -> bool:
    return bool(_EMPTY.match(text)) or len(text.split()) < words


def _bounded(text: str) -> str:
    if len(text) <= OUTCOME_CHARACTERS:
        return text
    cut = text[:OUTCOME_CHARACTERS]
    return (cut[: max(cut.rfind(" "), cut.rfind("\n"))].rstrip() if re.search(r"\s", cut) else cut) + " …"


_FENCED = re.compile(r"^ {0,3}```[a-zA-Z]*[ \t]*\n(?P<body>.*?)^ {0,3}```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_BRACES = 50


def json_object(text: str) -> str:
    """The JSON object of an answer: without a reasoning block, out of a fence or out of prose.

    Text that holds none comes back as it is, so that a parser says where it goes wrong.
    """
    visible = split(text).visible
    fenced = [body for match in _FENCED.finditer(visible) if (body := match["body"].strip()).startswith("{")]
    if fenced and not visible.startswith("{"):
        return fenced[-1]
    first, last = visible.find("{"), visible.rfind("}")
    if first < 0 or last < first:
        return visible
    whole = visible[first : last + 1]
    return whole if decoded(whole) is not None else _object_at_the_end(visible, first, last) or whole


def decoded(text: str) -> dict[str, object] | None:
    """The object that the text is; None when it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _object_at_the_end(text: str, first: int, last: int) -> str:
    """The first object that reaches to the last brace, where braces of the prose stand before it.

    One that ends before is part of a broken whole, and to read it alone would blame the wrong thing.
    """
    decoder = json.JSONDecoder()
    place = text.find("{", first + 1)
    for _ in range(_MOST_BRACES):
        if place < 0:
            break
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = -1
        if end == last + 1:
            return text[place:end]
        place = text.find("{", place + 1)
    return ""
