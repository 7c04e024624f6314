"""Opens a session: with an input line drawn in place where the terminal can do that, line by line where it cannot."""

from __future__ import annotations

import sys

from pawl.core.run import Approval, Mode
from pawl.interfaces.screen.opening import Opening
from pawl.interfaces.screen.screen import FoldingScreen
from pawl.interfaces.terminal.actions import Actions
from pawl.interfaces.terminal.beginning import begin, greeting
from pawl.interfaces.terminal.output_choice import can_draw
from pawl.interfaces.terminal.sitting import Sitting
from pawl.interfaces.terminal.wishes import Wishes


def open_session(opening: Opening) -> int:
    """Until the user leaves; the exit code."""
    wishes = Wishes(model=opening.model, mode=Mode(opening.mode), approval=Approval(opening.approval))
    sitting = Sitting(opening, wishes, begin)
    sitting.actions |= Actions(sitting).by_name
    if can_draw(opening.config.environment.get("TERM", "")):
        return _drawn(opening, sitting)
    from pawl.interfaces.terminal.plain import Plain

    return Plain(sitting).run()


def _drawn(opening: Opening, sitting: Sitting) -> int:
    from pawl.interfaces.terminal.completion import Suggestions
    from pawl.interfaces.terminal.history import PrivateHistory, history_path
    from pawl.interfaces.terminal.inline import Inline

    config = opening.config
    face = Inline(
        sitting,
        color=config.color,
        environment=dict(config.environment),
        history=PrivateHistory(history_path(config.state, str(opening.workspace))),
        completer=Suggestions(lambda: sitting.shared.commands.every, lambda: sitting.shared.paths),
    )
    FoldingScreen(sys.stdout, color=config.color).hint(greeting(sitting))
    try:
        face.run(lambda: sitting.start(face))
    finally:
        sitting.leave()
    return 128 + face.heard if face.heard else 0
