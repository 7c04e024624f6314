"""Chromium, driven as a person drives it: what is on the page is found by its role and its name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ui.cli.console import Pawl
from ui.cli.page_client import Page

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
PROGRAM = shutil.which("chromium") or ""
BUILT = ROOT / "src/pawl/ui/web/page"
NOTHING: dict[str, list[str]] = {"foreign": [], "dialogs": [], "errors": []}


def missing() -> str:
    """Why no browser can be driven here; empty when it can."""
    if not PROGRAM:
        return "there is no chromium on PATH"
    if not shutil.which("node") or not (WEB / "node_modules/playwright-core").is_dir():
        return "the packages of web/ are not installed ('make web')"
    return "" if (BUILT / "index.html").is_file() else "the page is not built ('make web')"


@dataclass
class Chrome:
    process: subprocess.Popen
    shots: Path
    """Where pictures are kept."""

    tabs: int = 0

    def tab(self, address: str) -> Tab:
        self.tabs += 1
        tab = Tab(self, self.tabs)
        tab.call(["goto", [address]])
        tab.css(".connection").having("ready").seen()
        return tab

    def call(self, tab: int, calls: list[list]) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"tab": tab, "calls": calls}) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        if "error" in said:
            raise AssertionError(said["error"])
        return said["value"]


@dataclass
class Found:
    """Something on the page; every call waits until it is there."""

    chrome: Chrome
    tab: int
    calls: list[list] = field(default_factory=list)

    def call(self, *more: list) -> Any:
        return self.chrome.call(self.tab, [*self.calls, *more])

    def _then(self, name: str, *given: object) -> Found:
        return Found(self.chrome, self.tab, [*self.calls, [name, list(given)]])

    def role(self, role: str, name: str = "", *, exact: bool = False) -> Found:
        return self._then("getByRole", role, {"name": name, "exact": exact} if name else {})

    def button(self, name: str) -> Found:
        return self.role("button", name, exact=True)

    def label(self, text: str) -> Found:
        return self._then("getByLabel", text, {"exact": True})

    def text(self, text: str, *, exact: bool = False) -> Found:
        return self._then("getByText", text, {"exact": exact})

    def css(self, selector: str) -> Found:
        return self._then("locator", selector)

    def nth(self, number: int) -> Found:
        return self._then("nth", number)

    def last(self) -> Found:
        return self._then("last")

    def having(self, text: str) -> Found:
        return self._then("filter", {"hasText": text})

    def frame(self, selector: str) -> Found:
        return self._then("frameLocator", selector)

    def click(self, **given: object) -> None:
        self.call(["click", [given]])

    def fill(self, text: str) -> None:
        self.call(["fill", [text]])

    def press(self, key: str) -> None:
        self.call(["press", [key]])

    def choose(self, value: str) -> None:
        self.call(["selectOption", [value]])

    def seen(self) -> None:
        self.call(["first", []], ["waitFor", [{"state": "visible"}]])

    def gone(self) -> None:
        self.call(["first", []], ["waitFor", [{"state": "hidden"}]])

    def words(self) -> str:
        return self.call(["first", []], ["innerText", []])

    def all_words(self) -> list[str]:
        return self.call(["allInnerTexts", []])

    def value(self) -> str:
        return self.call(["inputValue", []])

    def count(self) -> int:
        return self.call(["count", []])

    def attribute(self, name: str) -> str | None:
        return self.call(["getAttribute", [name]])


class Tab(Found):
    def close(self) -> None:
        self.call(["close", []])

    def key(self, keys: str) -> None:
        """Press keys where the focus is."""
        self.call(["keyboard", []], ["press", [keys]])

    def type(self, text: str) -> None:
        self.call(["keyboard", []], ["type", [text]])

    def evaluate(self, script: str) -> Any:
        return self.call(["evaluate", [script]])

    def go(self, pane: str) -> None:
        self.evaluate(f"location.hash = {json.dumps('#/' + pane)}")

    def size(self, width: int, height: int = 900) -> None:
        self.call(["setViewportSize", [{"width": width, "height": height}]])

    def theme(self, name: str) -> None:
        self.call(["emulateMedia", [{"colorScheme": name}]])

    def shot(self, name: str) -> None:
        self.call(["screenshot", [{"path": str(self.chrome.shots / f"{name}.png")}]])

    def told(self, forget: str = "") -> Any:
        """What the page reported by itself: requests to elsewhere, dialogs, errors; one of them is taken out."""
        return self.call(["told", [forget]])

    def audit(self) -> list[str]:
        """What axe finds."""
        return self.call(["audit", []])

    # The page's own parts.

    def ask(self, text: str) -> None:
        self.css("#request").fill(text)
        self.css("#request").press("Enter")

    def status(self, words: str) -> None:
        """Wait until the line at the top says so."""
        self.css(".connection").having(words).seen()


@dataclass
class Site:
    """A project, the server of its page, and the page."""

    pawl: Pawl
    server: Page
    tab: Tab


@contextmanager
def chrome(shots: Path) -> Iterator[Chrome]:
    """One browser with a profile of its own; pictures are kept in `shots`, outside the repository."""
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pawl-chrome-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["node", str(Path(__file__).parent / "driver.mjs"), str(WEB), profile, PROGRAM, str(shots)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": profile},  # noqa: TID251
        )
        try:
            yield Chrome(process, shots)
        finally:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
