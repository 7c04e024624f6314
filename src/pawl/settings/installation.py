"""How this Pawl was installed, so that an extra is added in the same way and never by a name on a package index."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def with_extra(extra: str) -> str:
    """The command that installs Pawl again, with this extra."""
    import importlib.metadata
    from urllib.parse import unquote

    installers = {"uv-receipt.toml": "uv tool install --force", "pipx_metadata.json": "pipx install --force"}
    how = next((one for name, one in installers.items() if (Path(sys.prefix) / name).exists()), "pip install")
    try:
        url = json.loads(importlib.metadata.distribution("pawl").read_text("direct_url.json") or "{}").get("url", "")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        url = ""
    source = unquote(url.removeprefix("file://")) if url.startswith("file://") else ""
    # Where the source is gone or no file, the clone that the readme makes stands for it.
    source = source if source and Path(source).exists() else "./pawl"
    return f"{how} '{source}[{extra}]'"
