"""Text cut to what a model is given at once: its start and its end stay, and what is missing is said."""

from __future__ import annotations


def bounded(text: str, most: int, hint: str) -> str:
    """The text in at most `most` characters, cut between lines where it can be; `hint` says how to see the rest."""
    if len(text) <= most:
        return text
    mark = f"\n[… {len(text):,} characters in all, the middle left out; {hint} …]\n"
    room = max(0, most - len(mark))
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    # A cut within the last tenth is moved to a line break, so that no half of a line is taken for a whole one.
    at = head.rfind("\n", len(head) - len(head) // 10)
    head = head[:at] if at > 0 else head
    at = tail.find("\n", 0, len(tail) // 10)
    tail = tail[at + 1 :] if at >= 0 else tail
    return head + mark + tail
