"""Reasoning blocks with nothing wrong in them, and an answer after each."""

from __future__ import annotations

MACRO = """<reasoning>
## Analyze
The user wants leap days to be accepted by the parser; done means that the new test passes.
## Research
src/dates.py:12 checks the day against a fixed table. I have not read the tests yet.
## Plan
1. read the tests
2. replace the table by the calendar module
## Reflect
Century years could be wrong; a test with 1900 would show it.
## Action
Read tests/test_dates.py to see what is covered.
## Delivery
NEEDS_WORK: nothing is changed yet.
</reasoning>

I start with the tests."""

MICRO = """<reasoning>
- happened: the test failed with a KeyError in src/dates.py
- next: read the lines around the failure
- why: the key comes from a table that has no entry for it
</reasoning>
Reading the file."""
