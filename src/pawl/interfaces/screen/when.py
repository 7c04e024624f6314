"""Times as the clock on the wall shows them."""

from __future__ import annotations

from datetime import datetime


def when(created: str, *, today: bool = False) -> str:
    """`today` leaves out what is clear to someone who looks now."""
    local = datetime.fromisoformat(created).astimezone()
    if not today:
        return f"{local:%Y-%m-%d %H:%M}"
    return f"{local:%H:%M}" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d}"
