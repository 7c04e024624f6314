"""Kept verdicts as small private files beside the store, a bounded number of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pawl.core.finding import Finding, Place, Severity, Standing, TestCounts, Verdict
from pawl.core.redact import redacted

MOST = 1000
LARGEST = 1 << 20
_PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class VerdictShelf:
    """Fits `keeping.Shelf`. A file that cannot be read or written is as good as none."""

    folder: Path

    def get(self, key: str) -> Verdict | None:
        path = self.folder / f"{key}.json"
        try:
            verdict = verdict_from(json.loads(path.read_text("utf-8")))
            os.utime(path)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return verdict

    def put(self, key: str, verdict: Verdict) -> None:
        text = json.dumps(verdict_shape(verdict))
        # What would have to be changed before it is stored would no longer be the verdict.
        if len(text) > LARGEST or redacted(text) != text:
            return
        with suppress(OSError):
            self.folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            temporary = self.folder / f".{key}.{os.getpid()}"
            temporary.write_text(text, "utf-8")
            os.replace(temporary, self.folder / f"{key}.json")
            self._bound()

    def _bound(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[: max(0, len(files) - MOST)]:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The verdicts that the user took as the state from which new findings are told, by workspace."""

    folder: Path

    def save(self, workspace: str, verdicts: Iterable[Verdict]) -> None:
        self.folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        path = self._path(workspace)
        temporary = path.with_suffix(f".{os.getpid()}")
        shapes = [verdict_shape(verdict) for verdict in verdicts]
        temporary.write_text(redacted(json.dumps({"verdicts": shapes})), "utf-8")
        os.replace(temporary, path)

    def load(self, workspace: str) -> tuple[Verdict, ...]:
        try:
            body = json.loads(self._path(workspace).read_text("utf-8"))
            return tuple(verdict_from(one) for one in body["verdicts"])
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def drop(self, workspace: str) -> bool:
        try:
            self._path(workspace).unlink()
        except OSError:
            return False
        return True

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{hashlib.sha256(workspace.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def verdict_shape(verdict: Verdict) -> dict[str, Any]:
    return asdict(verdict)


def verdict_from(body: dict[str, Any]) -> Verdict:
    counts = body["counts"]
    return Verdict(
        step=str(body["step"]),
        standing=Standing(body["standing"]),
        reason=str(body["reason"]),
        findings=tuple(_findings(body["findings"])),
        old=tuple(_findings(body["old"])),
        counts=None if counts is None else TestCounts(**counts),
        seconds=float(body["seconds"]),
    )


def _findings(rows: Iterable[dict[str, Any]]) -> Iterator[Finding]:
    for row in rows:
        frames = tuple(Place(**one) for one in row["frames"])
        yield Finding(**{**row, "severity": Severity(row["severity"]), "frames": frames})
