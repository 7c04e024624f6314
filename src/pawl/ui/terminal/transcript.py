"""A conversation as it is shown again, on the screen and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pawl.core.dialogue import Speaker, TranscriptLine, typed_words
from pawl.core.display import as_said
from pawl.ui.screen.markdown import Blocks, drawn, inert
from pawl.ui.screen.screen import Screen, brief, one_line, when

MOST_TOLD = 4
"""Messages that are shown of a conversation that is taken up again."""


def retell(out: Screen, said: Sequence[TranscriptLine]) -> None:
    """The last exchanges, as they were seen."""
    spoken = list(_exchanges(said))
    if len(spoken) > MOST_TOLD:
        out.hint(f"  … {len(spoken) - MOST_TOLD} earlier messages: /export writes them all")
    for message in (one.message for one in spoken[-MOST_TOLD:]):
        if message.is_users:
            out.lines(f"› {brief(typed_words(message.text), 500)}")
            continue
        blocks = Blocks()
        for block in (*blocks.feed(message.text), *blocks.close()):
            out.draw(f"{as_said(drawn(block, out.width - 1, color=out.color))}\n\n")


def _exchanges(said: Sequence[TranscriptLine]) -> Iterator[TranscriptLine]:
    """The user's words and the answer to each; not what the model was sent by Pawl, nor its words on the way."""
    answer: TranscriptLine | None = None
    for one in (line for line in said if line.message.text.strip()):
        if one.message.is_users:
            if answer is not None:
                yield answer
            answer = None
            yield one
        elif one.message.speaker is Speaker.ASSISTANT:
            answer = one
    if answer is not None:
        yield answer


def as_markdown(conversation: str, said: list[TranscriptLine]) -> str:
    """A conversation as a page: what was said, and which tools were called."""
    parts = [f"# Conversation {conversation}", ""]
    for one in said:
        message = one.message
        if message.speaker is Speaker.TOOL:
            continue
        who = "You" if message.is_users else "Pawl to the model" if message.automatic else "Pawl"
        parts += [f"## {who} · {when(one.time)}", ""]
        if message.text.strip():
            parts += [typed_words(message.text).strip() if message.is_users else message.text.strip(), ""]
        for call in message.calls:
            parts += [f"- called `{one_line(call.name)}`: `{one_line(brief(str(call.arguments), 200))}`"]
        if message.calls:
            parts.append("")
    return inert("\n".join(parts))
