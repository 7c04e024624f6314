"""Skills: folders with a SKILL.md that says how a kind of work is done, by the rules of agentskills.io.

A model is told names and descriptions, and reads the text of one when it needs it. Those of a repository count only
where it is trusted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from importlib import resources
from pathlib import Path

from pawl.core.display import safe_text
from pawl.core.errors import BinaryFile, NotFound
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line
from pawl.core.typed import data_table, front_matter
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.settings.trust import SKILLS, Folder, ReadFolder, files_of, trusted_files

FILE = "SKILL.md"
Shows = Callable[[str], bool]
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_COMPATIBILITY = 64, 1024, 500
LONGEST_FRONT = 16_000
MOST_LINES = 500
MOST_SKILLS = 200
MOST_FILES = 50
"""Named beside the text of a skill."""
MOST_TOLD = 6_000
"""Characters of all descriptions that a model is told."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
WITHOUT_EFFECT = ("agent", "context", "hooks", "paths")
"""Fields that others honour and that change nothing here."""
_BARE = re.compile(r"[^\s>|\"'\[{&*!%@`#][^#]*")
"""A value that is the same text in YAML and without it."""
_WORD = re.compile(r"[^\s,\[\]\"'(]+(?:\([^)]*\))?")
_FOLDER = re.compile(r"\$\{(?:CLAUDE|PAWL)_SKILL_DIR\}")
_HEAD = """\
Skills say how a kind of work is done well. Before you do such work read its skill with read_skill; follow it as far as
it fits the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str
    text: str
    source: str
    """Its SKILL.md, to be shown."""
    folder: str
    """Where commands find its files; empty for one that comes with Pawl."""
    fields: Mapping[str, object] = field(default_factory=dict, compare=False)
    """All of its front matter."""
    place: Folder = field(default=Path(), compare=False, repr=False)

    def says(self, name: str, usual: str = "") -> str:
        value = self.fields.get(name)
        if isinstance(value, list):
            # A hint such as [FILE], which YAML takes for a list.
            return f"[{', '.join(one for one in value if isinstance(one, str))}]"
        return value.strip() if isinstance(value, str) and value else usual

    @property
    def is_offered(self) -> bool:
        """A model may choose it."""
        return self.says("disable-model-invocation").lower() != "true"

    @property
    def is_typed(self) -> bool:
        """A person may call it as a command of a session."""
        return self.says("user-invocable").lower() != "false"

    def fits(self, request: str) -> bool:
        """One that comes with Pawl is told only where the request has a word of its work."""
        words = () if self.folder else data_table("pawl.agent", "skill_words.toml").get(self.name, ())
        return bool(self.folder) or any(re.search(rf"\b{re.escape(word)}", request, re.IGNORECASE) for word in words)

    def read(self, path: str = "") -> str:
        """Its text, or that of another of its files."""
        files = self.files()
        if not path:
            others = [one for one in files if one != FILE]
            where = f" in {self.folder}" if self.folder else ""
            listed = f"\n\n[further files{where}: {', '.join(others[:MOST_FILES])}]" if others else ""
            return f"{_FOLDER.sub(self.folder or '.', self.text)}{listed}"
        if path not in files:
            raise NotFound(f"the skill {self.name!r} has no file {path!r}", advice=f"its files: {', '.join(files)}")
        try:
            if isinstance(self.place, Path):
                return bounded.read_text(self.place / self.name / path)
            return self.place.files[f"{self.name}/{path}"].decode("utf-8")
        except UnicodeDecodeError:
            raise BinaryFile(f"{path!r} of the skill {self.name!r} is not text", advice="use it in a command") from None

    def files(self) -> tuple[str, ...]:
        if isinstance(self.place, Path):
            base = self.place / self.name
            return tuple(one.relative_to(base).as_posix() for one in sorted(base.rglob("*")) if one.is_file())
        start = f"{self.name}/"
        return tuple(sorted(one.removeprefix(start) for one in self.place.files if one.startswith(start)))


@dataclass(frozen=True, slots=True)
class SkillFault:
    path: str
    what: str


def skills_of(config: Config, workspace: str, shows: Shows = lambda path: True) -> dict[str, Skill]:
    """Those that come with Pawl, the user's own, and those of the workspace if it is trusted; later ones replace.

    Of the workspace only what `shows` lets pass.
    """
    return {skill.name: skill for skill, _ in _found(config, workspace, shows) if skill.description}


def faults_of(config: Config, workspace: str) -> tuple[SkillFault, ...]:
    """Every way in which a skill departs from the rules."""
    return tuple(fault for _, faults in _found(config, workspace, lambda path: True) for fault in faults)


def listed(config: Config, workspace: str, request: str, shows: Shows) -> dict[str, Skill]:
    """Those that a model is told of for this request."""
    found = skills_of(config, workspace, shows)
    return {name: found[name] for name in sorted(found) if found[name].is_offered and found[name].fits(request)}


def told(skills: Mapping[str, Skill]) -> tuple[str, ...]:
    """Their names and descriptions for a model; as many as there is room for."""
    lines, room = list[str](), MOST_TOLD
    for one in skills.values():
        line = f"- {one.name}: {safe_text(one_line(one.description, LONGEST_DESCRIPTION)).text}"
        room -= len(line)
        if room < 0:
            lines.append(f"- and {len(skills) - len(lines)} more: {', '.join(list(skills)[len(lines) :])}"[:500])
            break
        lines.append(line)
    return ("\n".join((_HEAD, *lines)),) if lines else ()


def own_folders(config: Config) -> tuple[Path, ...]:
    """The user's own folders of skills that are there; the first goes before the others."""
    places = (config.file.parent / "skills", config.home / ".agents/skills", config.home / ".claude/skills")
    return tuple(place for place in places if place.is_dir())


def skill_named(skills: Mapping[str, Skill], name: str) -> Skill:
    if name not in skills:
        raise NotFound(f"there is no skill {name!r}", advice=f"there are {', '.join(sorted(skills)) or 'none'}")
    return skills[name]


def _found(config: Config, workspace: str, shows: Shows) -> Iterator[tuple[Skill, list[SkillFault]]]:
    built_in = Path(str(resources.files("pawl.agent") / "skills"))
    yield from _read(built_in, "")
    for place in reversed(own_folders(config)):
        yield from _read(place, str(place))
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        for name in reversed(SKILLS):
            files = {path: data for path, data in trusted.folder(name).files.items() if shows(f"{name}/{path}")}
            yield from _read(ReadFolder(name, files), name)


def _read(place: Folder, folder: str) -> Iterator[tuple[Skill, list[SkillFault]]]:
    """`folder` is where commands find it."""
    for name, shown, read in itertools.islice(_skill_files(place), MOST_SKILLS):
        text, faults = "", list[str]()
        try:
            text = read()
        except (OSError, UnicodeDecodeError):
            faults.append("it cannot be read as text")
        fields, body = parted(text, faults)
        description = fields.get("description")
        skill = Skill(
            name=name,
            description=description.strip() if isinstance(description, str) else "",
            text=body.strip(),
            source=shown if folder else "comes with Pawl",
            folder=f"{folder}/{name}" if folder else "",
            fields=fields,
            place=place,
        )
        yield skill, [SkillFault(shown, what) for what in (*faults, *_faults(skill))]


def _skill_files(place: Folder) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """The name of each skill, its SKILL.md as it is shown, and what reads it."""
    if isinstance(place, Path):
        for found in sorted(place.glob(f"*/{FILE}")):
            yield found.parent.name, str(found), partial(bounded.read_text, found)
        return
    for path, shown, read in files_of(place, f"/{FILE}"):
        if path.count("/") == 1:
            yield path.partition("/")[0], shown, read


def parted(text: str, faults: list[str]) -> tuple[Mapping[str, object], str]:
    """The fields of the front matter, each a text, a list or a table, and the rest.

    What is no YAML is read line by line, as others do.
    """
    plain, body = front_matter(text)
    if body == text:
        return {}, body
    lines = text.partition("\n---")[0].splitlines()[1:]
    if sum(map(len, lines)) > LONGEST_FRONT:
        faults.append(f"its front matter has over {LONGEST_FRONT:,} characters")
        return {}, body
    if all(re.match(r"[\w-]+:", line) for line in lines) and all(map(_BARE.fullmatch, plain.values())):
        return plain, body
    import yaml  # 15 ms, and most front matter needs none of it

    try:
        # Every scalar is a text: no form of a date or number is an error here.
        fields = yaml.load("\n".join(lines), yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", "") or "nested too deeply"
        faults.append(f"its front matter is not YAML: {problem}")
        return plain, body
    return (fields, body) if isinstance(fields, dict) else (plain, body)


def listed_words(given: object) -> tuple[str, ...] | None:
    """The names in a field of front matter, a text or a list; None for anything else, and for a text that has none."""
    if isinstance(given, list | tuple):
        return tuple(given) if all(isinstance(one, str) and one for one in given) else None
    # What was read line by line may be the first line of more.
    if not isinstance(given, str) or re.match(r"[>|&!{]", given):
        return None
    return tuple(_WORD.findall(given)) or None


def _faults(skill: Skill) -> Iterable[str]:
    given = skill.says("name")
    if not _NAME.fullmatch(skill.name) or len(skill.name) > LONGEST_NAME:
        yield f"the folder name {skill.name!r} must be lowercase letters, digits and single hyphens, at most 64"
    if given != skill.name:
        yield f"its name {given!r} is not that of its folder" if given else "it has no name"
    if not skill.description:
        yield "it has no description, and is left out"
    if len(skill.description) > LONGEST_DESCRIPTION:
        yield f"its description has {len(skill.description)} characters; {LONGEST_DESCRIPTION} is the limit"
    if len(skill.says("compatibility")) > LONGEST_COMPATIBILITY:
        yield f"its compatibility has over {LONGEST_COMPATIBILITY} characters"
    if skill.text.count("\n") >= MOST_LINES:
        yield f"it has over {MOST_LINES} lines; move details to further files"
    for name in WITHOUT_EFFECT:
        if name in skill.fields:
            yield f"{name!r} has no effect here"
