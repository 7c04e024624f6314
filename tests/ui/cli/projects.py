"""Small Python projects to be repaired."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ui.cli.console import Pawl

Project = Callable[[Mapping[str, str]], Pawl]
"""Makes a project of these files."""
Searches = Callable[[float], None]
"""Limits the search of the reflex to so many seconds, by the user's settings."""

SETTINGS = {"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'}
RIGHT = "def after(number):\n    return number + 1\n"
WRONG = "def after(number):\n    return number + 2\n"
UNITTEST = """import unittest

from app import after


class Numbers(unittest.TestCase):
    def test_after(self):
        self.assertEqual(after(2), 3)
        self.assertEqual(after(5), 6)
        open("left-behind.txt", "w").close()
"""
