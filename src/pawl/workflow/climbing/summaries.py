"""What a fresh context is told of the attempts before it: bounded, the most useful first, in whole lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pawl.core.tiers import Attempt, AttemptEnd, Climb

HEADING = "PRIOR ATTEMPTS"
LONGEST_LINE = 240
MOST_STILL_FAILING = 12
_LEFT_OUT = "[{count} more lines are left out]"


def prior_attempts(climb: Climb) -> str:
    """The failure summary of a climb; empty when nothing was tried. The same for the same attempts.

    What still fails comes first, then one line for each attempt, the newest first, then the changes that must not be
    made again. A line that does not fit is left out as a whole.
    """
    if not climb.attempts:
        return ""
    return bounded(list(lines_of(climb)), climb.ladder.summary)


def lines_of(climb: Climb) -> Iterator[str]:
    """The whole of it, without a limit."""
    attempts = climb.attempts
    yield f"{HEADING}: {len(attempts)}, none was accepted. Do something else than they did."
    yield from _still_failing(climb)
    for number, attempt in reversed(list(enumerate(attempts, 1))):
        yield _short(f"#{number} {_told(climb, attempt)}")
    yield from _not_again(attempts)
    for number, attempt in reversed(list(enumerate(attempts, 1))):
        if attempt.said:
            yield _short(f"#{number} said: {attempt.said}")


def bounded(lines: Sequence[str], limit: int) -> str:
    """As many whole lines as fit, in their order; what is left out is said where there is room for it."""
    kept: list[str] = []
    room = limit
    for line in lines:
        if len(line) + bool(kept) <= room:
            room -= len(line) + bool(kept)
            kept.append(line)
    while kept:
        missing = len(lines) - len(kept)
        note = _LEFT_OUT.format(count=missing)
        if not missing or sum(map(len, kept)) + len(kept) + len(note) <= limit:
            return "\n".join([*kept, note] if missing else kept)
        kept.pop()
    return ""


def _still_failing(climb: Climb) -> Iterator[str]:
    """What the latest attempt that was tested left, with what the checks said about it."""
    last = next((attempt for attempt in reversed(climb.attempts) if attempt.failing is not None), None)
    messages = list(dict.fromkeys(last.messages if last is not None else ()))
    named = messages or [f"- {test}" for test in climb.best]
    if not named:
        return
    yield "still failing:"
    for line in named[:MOST_STILL_FAILING]:
        yield _short(line if line.startswith("- ") else f"- {line}")
    if len(named) > MOST_STILL_FAILING:
        yield f"- and {len(named) - MOST_STILL_FAILING} more"


def _told(climb: Climb, attempt: Attempt) -> str:
    where = climb.ladder.tiers[attempt.at.tier].name
    changed = f"changed {', '.join(attempt.paths)}" if attempt.paths else "changed nothing"
    return f"{where} {attempt.at.number}: {changed}; {_outcome(climb, attempt)}"


def _outcome(climb: Climb, attempt: Attempt) -> str:
    reasons = "; ".join(attempt.refused)
    if attempt.end is AttemptEnd.SENT_BACK:
        return f"sent back by the critic: {reasons}"
    if attempt.failing is None:
        return reasons or str(attempt.end)
    mended = sorted(set(climb.failing) - set(attempt.failing))
    broken = sorted(set(attempt.failing) - set(climb.failing))
    parts = [f"{len(attempt.failing)} of {len(climb.failing)} still fail" if not broken else ""]
    parts.append(f"mended {', '.join(mended[:3])}" if mended else "")
    parts.append(f"BROKE {', '.join(broken[:3])}" if broken else "")
    parts.append("kept as the ground of the next" if attempt.better else "")
    parts.append(reasons)
    return "; ".join(part for part in parts if part)


def _not_again(attempts: Sequence[Attempt]) -> Iterator[str]:
    """The changes that were refused, each once, the newest first."""
    seen: set[str] = set()
    first = True
    for number, attempt in reversed(list(enumerate(attempts, 1))):
        if not attempt.diff or attempt.better or attempt.digest in seen:
            continue
        seen.add(attempt.digest)
        if first:
            yield "do not make these changes again:"
            first = False
        yield f"#{number}:"
        yield from (_short(f"  {line}") for line in attempt.diff)


def _short(text: str) -> str:
    """One line, without the words that make it too long."""
    line = " ".join(text.split()) if not text.startswith("  ") else text.rstrip()
    if len(line) <= LONGEST_LINE:
        return line
    start = line[: LONGEST_LINE - 1]
    whole_words = start.rpartition(" ")[0]
    # A long path or literal is worth its beginning: without it the line would say nothing.
    return f"{whole_words if len(whole_words) > LONGEST_LINE // 2 else start}…"


def first_lines(messages: Iterable[str], most: int) -> tuple[str, ...]:
    """The first line of each message, each once."""
    lines = (next((line.strip() for line in message.splitlines() if line.strip()), "") for message in messages)
    return tuple(dict.fromkeys(_short(line) for line in lines if line))[:most]
