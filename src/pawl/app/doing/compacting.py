"""A conversation made shorter: it goes on as a new one that begins with a summary; the whole one stays as it was."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from pawl.app.workshop import Workshop
from pawl.context.compression import CompressionState, Kept, compress
from pawl.core.dialogue import Speaker
from pawl.core.dialogue_size import dialogue_tokens
from pawl.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    conversation: str
    """The one to go on with: the same when nothing was gained."""
    before_tokens: int
    after_tokens: int
    why_not: str = ""
    """Why it is as it was; empty when it is not."""


def compact(shop: Workshop, conversation: str) -> Compacted:
    """No model is asked: what was decided, read and done is summarized by rule, and the last turns stay as they are."""
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    if not messages:
        raise UsageError("there is nothing to compact yet", advice="say something first")
    request = max((at for at, one in enumerate(messages) if one.speaker is Speaker.USER), default=0)
    made = compress(messages, Kept(request=request), CompressionState(), too_long=True)
    if made.why_not:
        return Compacted(
            conversation=conversation,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            why_not=made.why_not,
        )
    other = f"c{secrets.token_hex(4)}"
    with shop.store.together():
        for message in made.messages:
            shop.store.transcripts.append(shop.workspace, other, message, run=shop.run_id)
    shop.note("compacted", {"conversation": conversation, "as": other, "tokens": made.after_tokens})
    return Compacted(conversation=other, before_tokens=made.before_tokens, after_tokens=made.after_tokens)


def sent_again(shop: Workshop, conversation: str) -> tuple[int, int]:
    """How many messages of a conversation are sent again with the next request, and about how many tokens that is."""
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    return len(messages), dialogue_tokens(messages)
