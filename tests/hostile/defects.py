"""Old defects that can be put back for one call, to see that the net notices: one function or constant is replaced.

The product knows nothing of this. A row is put back in the process that is about to be Pawl, after all is loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    place: str
    """`module:attribute`, where the attribute may be one of a class."""
    replacement: object
    noticed: tuple[str, ...]
    """The stories that must tell of it."""

    def __call__(self) -> None:
        module, _, path = self.place.partition(":")
        holder: object = importlib.import_module(module)
        *above, last = path.split(".")
        for name in above:
            holder = getattr(holder, name)
        getattr(holder, last)  # a name that is gone is a mistake of this table
        setattr(holder, last, self.replacement)


DEFECTS: Mapping[str, Defect] = {
    "secrets are hidden up to a number": Defect("pawl.workspace.hiding:MOST_SECRETS", 2, ("secrets in number",)),
}

Stories = Mapping[str, Callable[..., None]]
