"""Verification: test frameworks and their parsers, the steps and the ladder that runs them, the recovery map."""
