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

DEV_SERVER = """
[verify]
skip = ["types", "diagnostics (ty)"]

[[verify.dev_server]]
name = "toy"
when = { files = ["serve.py"] }
words = ["python3", "-u", "serve.py", "{port}"]
port = %d
ready = ['serving on port (?P<port>\\d+)']
"""
SERVE = """
import http.server, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
print(f"serving on port {sys.argv[1]}", flush=True)
server.serve_forever()
"""
SITE = {
    **SETTINGS,
    "serve.py": SERVE,
    "index.html": '<!doctype html><title>Shop</title><h1>Old shop</h1><script src="shop.js"></script>\n',
    "shop.js": 'console.error("the till is stuck"); missing();\n',
}
