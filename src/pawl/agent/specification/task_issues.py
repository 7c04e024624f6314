"""Tasks as issues and back: a documented JSON or Markdown file, or the issues of the host through `gh`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pawl.agent.specification.spec_folder import SpecFolder
from pawl.agent.specification.task_list import SpecTask, TaskList, read_tasks
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_json
from pawl.settings.config import host_program
from pawl.workspace.pull_request import call_gh, hosted

VERSION = 1
_TITLE = re.compile(r"^(?P<id>T\d{1,6})\b[.:]?\s*(?P<what>.*)$")
_NUMBER = re.compile(r"(?<!\s)\s*\(#(?P<number>\d+)\)")
_STATE = re.compile(r"(?mi)^State:\s*(?P<state>closed|reopened)\b")
_OWNER = re.compile(r"(?m)^# Issues of (?P<name>\S+)\s*$")
_DETAIL = re.compile(r"(?mi)^(?P<name>Files|Depends on|Proof|Test first|Requirements):[ \t]*(?P<text>\S(?:.*\S)?)")
_IDS = re.compile(r"\bT\d{1,6}\b")
PHASE = "Phase: Issues"
_HEAD = re.compile(r"^## (?P<title>.*\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIssue:
    """One task as an issue. One without the number of a task becomes a new one."""

    title: str
    body: str = ""
    state: str = "open"
    """`open`, `closed` or `reopened`."""
    labels: tuple[str, ...] = ()
    number: int | None = None
    """Of the issue at the host."""
    foreign: bool = False
    """The number of its task is that of another specification."""

    @property
    def task(self) -> str:
        found = _TITLE.match(self.title)
        return found["id"].upper() if found else ""

    @property
    def what(self) -> str:
        found = _TITLE.match(self.title)
        return found["what"] if found else self.title


def issues_of(spec: SpecFolder, tasks: TaskList) -> tuple[TaskIssue, ...]:
    return tuple(
        TaskIssue(
            title=f"{one.id}: {one.what}",
            body="\n".join(_body(spec, one)),
            state="closed" if one.done else "open",
            labels=tuple(filter(None, (spec.name, one.story))),
        )
        for one in tasks.tasks
    )


def _body(spec: SpecFolder, task: SpecTask) -> Iterator[str]:
    yield f"Task of {spec.path}/tasks.md, {task.phase}".rstrip(", ")
    details = (
        ("Files", task.files),
        ("Depends on", task.after),
        ("Proof", tuple(f"`{one}`" for one in task.proof)),
        ("Test first", ("yes",) * task.test_first),
        ("Requirements", task.covers),
    )
    yield from (f"{name}: {', '.join(some)}" for name, some in details if some)


def as_json(spec: SpecFolder, issues: Iterable[TaskIssue]) -> str:
    rows = [{"title": one.title, "body": one.body, "state": one.state, "labels": list(one.labels)} for one in issues]
    return json.dumps({"version": VERSION, "spec": spec.name, "issues": rows}, indent=2, ensure_ascii=False) + "\n"


def as_markdown(spec: SpecFolder, issues: Iterable[TaskIssue]) -> str:
    parts = [f"# Issues of {spec.name}"]
    for one in issues:
        parts.append(f"## {one.title}\n\nState: {one.state}\nLabels: {', '.join(one.labels)}\n\n{one.body}")
    return "\n\n".join(parts) + "\n"


def read_issues(text: str, where: str, spec: str) -> tuple[TaskIssue, ...]:
    """Of a file in JSON, also as `gh issue list --json` writes it, or in Markdown. In a file of another specification
    the numbers of tasks are not those of this one: they get a name of their own."""
    found, owner = _from_json(text, where) if text.lstrip()[:1] in ("{", "[") else _from_markdown(text)
    if not found:
        raise UsageError(f"{where!r} holds no issue", advice="its form is that of 'pawl spec issues export'")
    return tuple(replace(one, foreign=owner not in ("", spec)) for one in found)


def _from_json(text: str, where: str) -> tuple[tuple[TaskIssue, ...], str]:
    try:
        value: Any = read_json(text)
    except (Unreadable, ValueError) as error:
        raise UsageError(f"{where!r} is not JSON: {error}", advice="correct that line") from error
    rows = value.get("issues") if isinstance(value, Mapping) else value
    if not isinstance(rows, list) or not all(isinstance(one, Mapping) and one.get("title") for one in rows):
        raise UsageError(f"{where!r} holds no list of issues with titles", advice="see 'pawl spec issues export'")
    return tuple(
        TaskIssue(
            title=" ".join(str(one["title"]).split()),
            body=str(one.get("body") or ""),
            state=_state(str(one.get("state") or "open"), str(one.get("stateReason") or "")),
            number=one["number"] if isinstance(one.get("number"), int) else None,
        )
        for one in rows
    ), str(value.get("spec") or "") if isinstance(value, Mapping) else ""


def _state(state: str, reason: str) -> str:
    return "reopened" if (state.lower(), reason.lower()) == ("open", "reopened") else state.lower()


def _from_markdown(text: str) -> tuple[tuple[TaskIssue, ...], str]:
    heads = list(_HEAD.finditer(text))
    ends = (*(one.start() for one in heads[1:]), len(text))
    bodies = (text[one.end() : end].strip() for one, end in zip(heads, ends, strict=False))
    states = ((body, _STATE.search(body)) for body in bodies)
    owner = _OWNER.search(text)
    return tuple(
        TaskIssue(title=one["title"], body=body, state=state["state"].lower() if state else "open")
        for one, (body, state) in zip(heads, states, strict=True)
    ), owner["name"] if owner else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedIssues:
    text: str
    """Of tasks.md, with what the issues say."""
    ticked: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


def known_task(tasks: TaskList, issue: TaskIssue) -> SpecTask | None:
    """The task of an issue: by its own number in the title, by the issue's number, or else by the title."""
    for one in tasks.tasks:
        if one.id == issue.task and not issue.foreign:
            return one
    for one in tasks.tasks:
        at_host = _NUMBER.search(one.what)
        if at_host and issue.number is not None:
            if int(at_host["number"]) == issue.number:
                return one
        elif _plain(one.what) == _plain(issue.what):
            return one
    return None


def _plain(what: str) -> str:
    """Without what an import changes: the number of the issue, and those of tasks."""
    return _IDS.sub("T", _NUMBER.sub("", what)).strip()


def imported(tasks: TaskList, issues: Iterable[TaskIssue]) -> ImportedIssues:
    """Tasks are ticked or opened as their issues say, and issues without a task become tasks at the end."""
    pairs = [(issue, known_task(tasks, issue)) for issue in issues]
    ticked = tuple(one.id for issue, one in pairs if one and issue.state == "closed" and not one.done)
    reopened = tuple(one.id for issue, one in pairs if one and issue.state == "reopened" and one.done)
    text = read_tasks(tasks.ticked(ticked)).reopened(reopened).rstrip("\n")
    last, width = max(int(one.id[1:]) for one in tasks.tasks), max(len(one.id) - 1 for one in tasks.tasks)
    fresh = [issue for issue, one in pairs if one is None]
    new = tuple(f"T{number:0{width}d}" for number in range(last + 1, last + 1 + len(fresh)))
    ids = {one.id: one.id for one in tasks.tasks if not any(issue.foreign for issue in fresh)}
    ids |= {issue.task: one.id for issue, one in pairs if one and issue.task}
    ids |= {issue.task: one for issue, one in zip(fresh, new, strict=True) if issue.task}
    if fresh:
        heads = [one["title"] for one in _HEAD.finditer(text)]
        text += "\n" if heads and heads[-1] == PHASE else f"\n\n## {PHASE}\n\n"
        text += "\n".join(line for issue, one in zip(fresh, new, strict=True) for line in _lines(issue, one, ids))
    made = f"{text}\n"
    read_tasks(made)
    return ImportedIssues(text=made, ticked=ticked, reopened=reopened, new=new)


def _lines(issue: TaskIssue, name: str, ids: Mapping[str, str]) -> Iterator[str]:
    """The issue as a task, with what its body says in the words of tasks.md."""
    at_host = f" (#{issue.number})" if issue.number and not _NUMBER.search(issue.what) else ""
    what = _IDS.sub(lambda found: ids.get(found[0], found[0]), issue.what)
    yield f"- [{'x' if issue.state == 'closed' else ' '}] {name} {what}{at_host}"
    for detail in _DETAIL.finditer(issue.body):
        text = detail["text"]
        if detail["name"].lower() == "depends on":
            lost = [one for one in _IDS.findall(text) if one not in ids]
            if lost:
                raise UsageError(
                    f"{issue.title!r} depends on {lost[0]}, which is neither a task here nor an imported issue",
                    advice="export that one too, or take it out of the body",
                )
            text = _IDS.sub(lambda found: ids[found[0]], text)
        yield f"  - {detail['name']}: {text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedIssues:
    """The issues of the host's repository, through `gh` and its log-in."""

    spec: SpecFolder

    def _gh(self, *words: str) -> str:
        environment = self.spec.shop.config.environment
        program = host_program("gh", environment)
        if not program:
            raise UsageError("gh is not installed", advice="leave out --github: a file can be imported by hand")
        name = hosted(self.spec.shop.tree)
        return call_gh((program, *words, "--repo", f"{name.host}/{name.name}"), environment, name.host)

    def listed(self) -> tuple[TaskIssue, ...]:
        fields = "title,body,state,stateReason,number"
        text = self._gh(
            "issue", "list", "--state", "all", "--label", self.spec.name, "--limit", "1000", "--json", fields
        )
        return _from_json(text, "gh issue list")[0]

    def export(self, tasks: TaskList) -> tuple[str, ...]:
        """Creates those whose task has none yet; their addresses."""
        self._gh("label", "create", self.spec.name, "--force")
        found = (known_task(tasks, one) for one in self.listed())
        there = {one.id for one in found if one}
        made = []
        for one in issues_of(self.spec, tasks):
            if one.task not in there and one.state == "open":
                words = ("issue", "create", "--title", one.title, "--body", one.body, "--label", self.spec.name)
                made.append(self._gh(*words).strip())
        return tuple(made)
