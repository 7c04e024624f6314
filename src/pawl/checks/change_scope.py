"""Where a request lets files change: inside of its scope, and not where it says hands off."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from pawl.code.languages import is_test
from pawl.core.change import Change, ChangeSet, is_directory
from pawl.core.lazy_dataclass import dataclass

MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeScope:
    """Paths are files, folders or patterns; a name without a folder means that file wherever it lies."""

    allowed: tuple[str, ...] = ()
    """Empty where the request sets no bounds."""
    tests_allowed: bool = False
    """Tests may change beside what is allowed."""
    untouched: tuple[str, ...] = ()
    tests_untouched: bool = False
    """Tests that are there stay as they are; new ones may be added."""

    def offences(self, changes: ChangeSet) -> tuple[str, ...]:
        """Every file that may not change and does, by name."""
        return tuple(line for change in changes for line in self._offence(change))

    def _offence(self, change: Change) -> Iterator[str]:
        path = change.path
        if all(node is None or is_directory(node) for node in (change.before, change.after)):
            return
        hands_off = next((one for one in self.untouched if _lies_in(path, one)), "")
        if hands_off:
            yield f"{path!r} changes, and the request says not to touch {hands_off!r}"
        elif self.tests_untouched and change.before is not None and is_test(path):
            yield f"{path!r} changes, and the request says not to touch the tests"
        elif self.allowed and not self._is_inside(path):
            more = ", …" if len(self.allowed) > MOST_NAMED else ""
            yield f"{path!r} is outside of the scope of the request ({', '.join(self.allowed[:MOST_NAMED])}{more})"

    def _is_inside(self, path: str) -> bool:
        return (self.tests_allowed and is_test(path)) or any(_lies_in(path, one) for one in self.allowed)


def _lies_in(path: str, place: str) -> bool:
    if "/" not in place and fnmatchcase(path.rpartition("/")[2], place):
        return True
    return path == place or path.startswith(f"{place}/") or fnmatchcase(path, place)
