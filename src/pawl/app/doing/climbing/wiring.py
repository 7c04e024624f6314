"""Joins the climb of a run with its models, its verification and its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pawl.app.doing.climbing.asked import Asker
from pawl.app.doing.climbing.climb_record import ClimbRecord
from pawl.app.doing.climbing.climber import LadderClimber
from pawl.app.doing.talking import Talker
from pawl.app.doing.verifying import Verifier


def climber(talker: Talker, verifier: Verifier, *, listen: Callable[[Any], None]) -> LadderClimber:
    record = talker.record
    asker = Asker(
        shop=record.shop,
        record=ClimbRecord(record),
        talker=talker,
        verifier=verifier,
        conversation=talker.conversation,
        listen=listen,
        cancel=talker.cancel,
        permit=talker.permit,
    )
    return LadderClimber(shop=record.shop, asker=asker, listen=listen)
