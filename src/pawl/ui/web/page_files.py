"""The built page: the files that came with Pawl, read once; nothing else of this machine is ever served."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.ui.web.guard import POLICY

NONCE = b"__NONCE__"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    kind: str
    lasting: bool = True
    """Its name says what it holds, so that a browser may keep it."""

    def answer(self, shown_by: str = "'none'") -> tuple[bytes, dict[str, str]]:
        """The bytes and their headers; a document gets a nonce of its own for the styles that its editor makes.

        `shown_by` is the origin that may show it in a frame.
        """
        if not self.kind.startswith("text/html"):
            lasting = {"cache-control": "max-age=31536000, immutable"} if self.lasting else {}
            return self.body, {"content-type": self.kind, **lasting}
        nonce = secrets.token_urlsafe(16)
        policy = POLICY.format(nonce=nonce, shown_by=shown_by)
        return self.body.replace(NONCE, nonce.encode()), {"content-type": self.kind, "content-security-policy": policy}


def page_files(own: str = "") -> Mapping[str, PageFile]:
    """The page that comes with Pawl, or a build of the user's own; by the path in an address."""
    folder: Traversable = Path(own) if own else resources.files("pawl.ui.web") / "page"
    if not (folder / "index.html").is_file():
        advice = "build it with 'make web' in a clone, or install Pawl from a wheel"
        raise UsageError(
            f"there is no page in {own!r}" if own else "the page is not built",
            advice="name a folder with an index.html" if own else advice,
        )
    return folder_files(folder)


def folder_files(folder: Traversable) -> Mapping[str, PageFile]:
    found = dict(_files(folder, ""))
    return {**found, "/": found["/index.html"]}


def _files(folder: Traversable, above: str) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for one in folder.iterdir():
        path, ending = f"{above}/{one.name}", f".{one.name.rpartition('.')[2]}"
        if isinstance(one, Path) and one.is_symlink():
            continue  # What a build makes may lead anywhere.
        if one.is_dir():
            found += _files(one, path)
        elif ending in KINDS and one.is_file():
            found.append((path, PageFile(one.read_bytes(), KINDS[ending])))
    return found
