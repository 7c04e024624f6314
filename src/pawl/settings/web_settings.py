"""The table [web] of the settings: whether agents may ask for pages, and how they search."""

from __future__ import annotations

import os

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_settings
from pawl.settings.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """The fields of the table."""

    fetch: bool = False
    """There is a tool `web_fetch`; each host is asked about unless a rule allows it."""
    search: tuple[str, ...] = ()
    """The words of a program on this machine that is given the query as its last word and writes what it found."""
    private: bool = False
    """Addresses of this machine and its network may be asked too."""
    seconds: float = 20.0


def web_settings(config: Config) -> WebSettings:
    read = read_settings(WebSettings(), "web", config.tables.web)
    if read.search and not os.path.isabs(read.search[0]):
        raise ConfigError(
            f"web.search begins with {read.search[0]!r}, which is not an absolute path", advice="name the whole path"
        )
    return read
