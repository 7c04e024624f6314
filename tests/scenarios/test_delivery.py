"""What is delivered is proved, reviewed, justified and remembered as it is, through `do` and `loop`."""

from __future__ import annotations

import pytest
from scenarios.story import Story, patch, say

from pawl.core.events import Corrected
from pawl.core.run import DeliveryState

LEAP = "return year % 4 == 0"
WRONG = "return year % 4 == 0 and year % 100 != 0"
RIGHT = "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"


@pytest.mark.spec("C11")
def test_done_without_a_change_after_a_refusal_is_sent_back_before_the_checks_run_again(story: Story):
    story.model_says(
        patch("dates.py", LEAP, WRONG),
        say("All done."),
        say("All done."),
        patch("dates.py", WRONG, RIGHT),
        say("Done."),
    )
    done = story.do("fix is_leap: test_century fails", approve="never")
    assert (done.delivery, done.requests) == (DeliveryState.DONE, 5)
    (sent_back,) = [event for event in story.events if isinstance(event, Corrected)]
    assert sent_back.name == "claims_done" and "tests: " in sent_back.why
