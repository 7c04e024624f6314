"""Pictures and PDFs that the user attaches with `@path` or hands over, for models that can read them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable, Iterator

from pawl.agent.intents import attached
from pawl.core.dialogue import PDF, Attachment
from pawl.core.errors import PawlError, TooLarge
from pawl.models.providers import Capabilities
from pawl.workspace.bench_files import Files

MOST = 10
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": PDF,
}


def media_type(data: bytes) -> str:
    """By what it begins with, whatever its name is; empty for what is neither a picture nor a PDF."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), "")


def attachments(
    files: Files,
    text: str,
    model: Capabilities,
    tell: Callable[[str], object],
    given: Iterable[tuple[str, bytes]] = (),
) -> Iterator[Attachment]:
    """Those that the model can read; of the others the user is told why they are only named. `given` are no files."""
    for path, data in itertools.islice((*given, *_named(files, text, tell)), MOST):
        kind = media_type(data)
        what, can = ("PDFs", model.documents) if kind == PDF else ("pictures", model.images)
        if kind and not can:
            tell(f"{path} is not sent: the model is not known to read {what} (docs/models.md#pictures-and-pdfs)")
        elif kind:
            yield Attachment(name=path, media_type=kind, data=base64.b64encode(data).decode("ascii"))


def _named(files: Files, text: str, tell: Callable[[str], object]) -> Iterator[tuple[str, bytes]]:
    for path, _, end in list(attached(text))[:MOST]:
        try:
            data = files.read(path)
            yield path, data if end is None else b""
        except TooLarge as error:
            tell(f"{path} is not sent: {error.message}")
        except (PawlError, OSError) as error:
            # `@property` and `@types/node` name no file; what ends like one is meant to be one.
            if "." in path.rpartition("/")[2]:
                tell(f"{path} is not attached: {error.message if isinstance(error, PawlError) else error.strerror}")
