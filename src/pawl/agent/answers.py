"""Answers that were given before, whether they still hold, and what an answer cites.

An answer rests on everything that was read, listed or looked for on the way to it. Where that is much, it rests on all
contents of the folders that were searched: any change below them then counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from pawl.agent.own_extensions import own_form
from pawl.agent.policy import prompt_folders
from pawl.core.errors import PawlError, StoreError, TimedOut
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Citation, RunTerms
from pawl.settings import files as bounded
from pawl.settings.trust import files_of
from pawl.store.memories import Dependency, KeptAnswer, RestKind
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

SIMILAR = 0.7
"""The part of the words that two queries share, from which on they ask the same."""
MOST_RESTS = 256
"""Files that are named one by one."""
MOST_FILES = 20_000
"""Above so many it takes too long to look whether an answer still holds."""

_UNREADABLE = "unreadable"
_WORD = re.compile(r"\w+")


def normalised(query: str) -> str:
    """The same question however it is spaced and ended; its words stay, because names of code differ by their case."""
    if "\n" in query.strip():
        return query.strip()
    return " ".join(query.split()).rstrip("?!. ") or query.strip()


def overlap(one: str, other: str) -> float:
    """The part of the words that both have, of those of the longer one."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / max(len(words), len(others), 1)


def are_similar(one: str, other: str) -> bool:
    return overlap(one, other) >= SIMILAR


class WatchedFiles:
    """Fits `Files`: the same files, and a record of what was seen of them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._rests: dict[tuple[RestKind, str], str] = {}
        self._walked: dict[str, tuple[str, ...]] = {}
        self._unsteady = False
        """Something was written, or was otherwise at a second look."""

    def read(self, path: str) -> bytes:
        try:
            data = self._files.read(path)
        except (PawlError, OSError) as error:
            self._note(RestKind.FILE, path, "" if isinstance(error, TimedOut) else _UNREADABLE)
            raise
        self._note(RestKind.FILE, path, _digest(data))
        return data

    def exists(self, path: str) -> bool:
        found = self._files.exists(path)
        self._note(RestKind.PRESENCE, path, str(found))
        return found

    def walk(self, under: str = "") -> Iterable[str]:
        found: list[str] = []
        try:
            for path in self._files.walk(under):
                found.append(path)
                # A list that is too long to look after is not kept.
                self._unsteady = self._unsteady or len(found) > MOST_FILES
                if self._unsteady:
                    found = []
                yield path
        except (PawlError, OSError) as error:
            self._note(RestKind.LISTING, under, "" if isinstance(error, TimedOut) else _UNREADABLE)
            raise
        except GeneratorExit:
            self._unsteady = True
            raise
        self._note(RestKind.LISTING, under, _listing(found))
        self._walked[under] = tuple(found)

    def write(self, path: str, data: bytes) -> None:
        self._unsteady = True
        self._files.write(path, data)

    def delete(self, path: str) -> None:
        self._unsteady = True
        self._files.delete(path)

    @property
    def seen(self) -> dict[str, str]:
        """The digest of each file whose content was read."""
        files = (item for item in self._rests.items() if item[0][0] is RestKind.FILE)
        return {path: digest for (_, path), digest in files if digest != _UNREADABLE}

    def rests(self) -> tuple[Dependency, ...]:
        """The files that an answer rests on; none when that is unknown, or too much to watch."""
        if self._unsteady:
            return ()
        found = tuple(sorted(Dependency(kind, path, digest) for (kind, path), digest in self._rests.items()))
        if len(found) <= MOST_RESTS:
            return found
        covered = {path for paths in self._walked.values() for path in paths}
        if len(covered) > MOST_FILES:
            return ()
        # Where a folder was walked, all below it counts, so that neither its files nor its list are named.
        tops = _topmost(self._walked)
        single = [rest for rest in found if rest.kind is not RestKind.LISTING and rest.path not in covered]
        failed = [rest for rest in found if rest.kind is RestKind.LISTING and rest.path not in self._walked]
        try:
            trees = [Dependency(RestKind.TREE, top, self._tree(top)) for top in tops]
        except TimedOut:
            return ()
        return tuple(sorted([*trees, *single, *failed])) if len(single) + len(failed) <= MOST_RESTS else ()

    def _tree(self, top: str) -> str:
        seen = {path: self._rests.get((RestKind.FILE, path)) for path in self._walked[top]}
        return _tree((path, digest or _content(self._files, path)) for path, digest in seen.items())

    def _note(self, kind: RestKind, path: str, digest: str) -> None:
        if len(self._rests) >= MOST_FILES:
            self._unsteady = True
            return
        known = self._rests.setdefault((kind, path), digest)
        if known != digest or not digest:
            self._unsteady = True


def still_holds(files: Files, rests: Iterable[Dependency]) -> bool:
    """Whether everything stands as it stood; False when that cannot be found out in time."""
    try:
        return all(_standing(files, rest) == rest.digest for rest in rests)
    except TimedOut:
        return False


def _standing(files: Files, rest: Dependency) -> str:
    match rest.kind:
        case RestKind.FILE:
            return _content(files, rest.path)
        case RestKind.PRESENCE:
            return str(files.exists(rest.path))
    try:
        found = tuple(files.walk(rest.path))
    except TimedOut:
        raise
    except (PawlError, OSError):
        return _UNREADABLE
    if rest.kind is RestKind.LISTING:
        return _listing(found)
    return _tree((path, _content(files, path)) for path in found)


def _content(files: Files, path: str) -> str:
    try:
        return _digest(files.read(path))
    except TimedOut:
        raise
    except (PawlError, OSError):
        return _UNREADABLE


def _topmost(folders: Iterable[str]) -> list[str]:
    """Those that are not below another of them."""
    tops: list[str] = []
    for folder in sorted(folders):
        if not any(not top or folder == top or folder.startswith(f"{top}/") for top in tops):
            tops.append(folder)
    return tops


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _listing(paths: Iterable[str]) -> str:
    return _digest("\0".join(paths).encode("utf-8", "surrogateescape"))


def _tree(contents: Iterable[tuple[str, str]]) -> str:
    return _listing(part for pair in contents for part in pair)


_SCRIPT = "scripted:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShelf:
    """The answers to one question. Losing one costs a request, so that trouble with the store is passed over."""

    shop: Project
    asked_of: str
    query: str

    @classmethod
    def of(cls, shop: Project, terms: RunTerms, text: str, told: Sequence[str]) -> AnswerShelf | None:
        """`told` is what the model is told beside its prompts: with other memories it may answer otherwise.

        None when an extension of the user's says that the answer is not to be kept.
        """
        form = own_form(shop.config, text)
        if form is None:
            return None
        parts = [terms.model, terms.reasoning, shop.config.settings.detail, _script(terms.model), *told]
        extensions = shop.config.tables.extensions
        parts += [*_own_prompts(shop), *(str(extensions[name]) for name in ("answers", "tools") if name in extensions)]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        return cls(shop=shop, asked_of=f"{terms.model} {digest[:16]}", query=normalised(form))

    @property
    def known(self) -> Sequence[KeptAnswer]:
        with suppress(StoreError):
            return self.shop.store.answers.find(self.shop.workspace, self.asked_of, self.query)
        return ()

    def standing(self, files: WatchedFiles) -> KeptAnswer | None:
        """The one that still holds."""
        for answer in self.known:
            if still_holds(files, answer.rests):
                with suppress(StoreError):
                    self.shop.store.answers.use(answer.id)
                return answer
        return None

    def keep(self, text: str, files: WatchedFiles) -> None:
        """Keeps an answer from these files; one that rests on nothing is not about the code."""
        rests = files.rests()
        if not rests:
            return
        answer = KeptAnswer(query=self.query, asked_of=self.asked_of, text=text, rests=rests)
        with suppress(StoreError):
            self.shop.store.answers.keep(self.shop.workspace, answer, are_similar)


def _own_prompts(shop: Project) -> list[str]:
    """The prompts that the user or the workspace overrides: with others the model may answer otherwise."""
    found = []
    for folder in prompt_folders(shop.config, shop.workspace):
        for _, source, read in files_of(folder, ".md"):
            # One that cannot be read stops the question with its name.
            with suppress(OSError, UnicodeDecodeError):
                found.append(f"{source}\0{read()}")
    return found


def _script(model: str) -> str:
    """The model of a script is its text; another text is another one."""
    return _file_digest(model.removeprefix(_SCRIPT)) if model.startswith(_SCRIPT) else ""


def _file_digest(path: str) -> str:
    """Of a file's content; empty for one that cannot be read, which is told where it is used."""
    with suppress(OSError):
        return hashlib.sha256(bounded.read_bytes(path, bounded.LARGEST_DATA)).hexdigest()
    return ""


_CITED = re.compile(
    r"(?<![\w./-])(?P<path>(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,9}|(?:[\w.@+-]+/)+[\w.@+-]+):(?P<line>\d{1,7})\b"
)
_MOST_CITED = 200


def citations(text: str, count_lines: Callable[[str], int | None]) -> tuple[Citation, ...]:
    """Every `path:line` of the text, once. `count_lines` is None for what is not a file of the workspace."""
    counted: dict[str, int | None] = {}
    found: dict[tuple[str, int], Citation] = {}
    for path, line in _places(text):
        if path not in counted:
            counted[path] = count_lines(path)
        lines = counted[path]
        holds = lines is not None and 1 <= line <= max(1, lines)
        found.setdefault((path, line), Citation(path=path, line=line, holds=holds))
        if len(found) >= _MOST_CITED:
            break
    return tuple(found.values())


def _places(text: str) -> Iterator[tuple[str, int]]:
    for match in _CITED.finditer(text):
        # An address such as localhost.example:8080 is no file.
        if not text[max(0, match.start() - 3) : match.start()].endswith("://"):
            yield match["path"].removeprefix("./"), int(match["line"])
