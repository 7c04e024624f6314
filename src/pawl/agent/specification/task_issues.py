"""Tasks as issues and back: a documented JSON or Markdown file, or the issues of the host through `gh`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pawl.agent.specification.spec_folder import SpecFolder
from pawl.agent.specification.task_list import TaskList, read_tasks
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_json
from pawl.settings.config import host_program
from pawl.workspace.pull_request import call_gh, hosted

VERSION = 1
_TITLE = re.compile(r"^(?P<id>T\d{1,6})\b[.:]?\s*(?P<what>.*)$")
_CLOSED = re.compile(r"(?mi)^State:\s*closed")
_HEAD = re.compile(r"^## (?P<title>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIssue:
    """One task as an issue. One without the number of a task becomes a new one."""

    title: str
    body: str = ""
    state: str = "open"
    """`open` or `closed`."""
    labels: tuple[str, ...] = ()
    number: int | None = None
    """Of the issue at the host."""

    @property
    def task(self) -> str:
        found = _TITLE.match(self.title)
        return found["id"].upper() if found else ""


def issues_of(spec: SpecFolder, tasks: TaskList) -> tuple[TaskIssue, ...]:
    return tuple(
        TaskIssue(
            title=f"{one.id}: {one.what}",
            body="\n".join(
                line
                for line in (
                    f"Task of {spec.path}/tasks.md, {one.phase}".rstrip(", "),
                    f"Files: {', '.join(one.files)}" if one.files else "",
                    f"Depends on: {', '.join(one.after)}" if one.after else "",
                    f"Proof: {', '.join(one.proof)}" if one.proof else "",
                )
                if line
            ),
            state="closed" if one.done else "open",
            labels=tuple(filter(None, (spec.name, one.story))),
        )
        for one in tasks.tasks
    )


def as_json(spec: SpecFolder, issues: Iterable[TaskIssue]) -> str:
    rows = [{"title": one.title, "body": one.body, "state": one.state, "labels": list(one.labels)} for one in issues]
    return json.dumps({"version": VERSION, "spec": spec.name, "issues": rows}, indent=2, ensure_ascii=False) + "\n"


def as_markdown(spec: SpecFolder, issues: Iterable[TaskIssue]) -> str:
    parts = [f"# Issues of {spec.name}"]
    for one in issues:
        parts.append(f"## {one.title}\n\nState: {one.state}\nLabels: {', '.join(one.labels)}\n\n{one.body}")
    return "\n\n".join(parts) + "\n"


def read_issues(text: str, where: str) -> tuple[TaskIssue, ...]:
    """Of a file in JSON, also as `gh issue list --json` writes it, or in Markdown."""
    found = _from_json(text, where) if text.lstrip()[:1] in ("{", "[") else _from_markdown(text)
    if not found:
        raise UsageError(f"{where!r} holds no issue", advice="its form is that of 'pawl spec issues export'")
    return found


def _from_json(text: str, where: str) -> tuple[TaskIssue, ...]:
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
            state=str(one.get("state") or "open").lower(),
            number=one["number"] if isinstance(one.get("number"), int) else None,
        )
        for one in rows
    )


def _from_markdown(text: str) -> tuple[TaskIssue, ...]:
    heads = list(_HEAD.finditer(text))
    ends = (*(one.start() for one in heads[1:]), len(text))
    bodies = (text[one.end() : end].strip() for one, end in zip(heads, ends, strict=False))
    return tuple(
        TaskIssue(title=one["title"], body=body, state="closed" if _CLOSED.search(body) else "open")
        for one, body in zip(heads, bodies, strict=True)
    )


def imported(tasks: TaskList, issues: Iterable[TaskIssue]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The file with what the issues say: those that are ticked, and those that are new, at its end."""
    known = {one.id: one for one in tasks.tasks}
    several = tuple(issues)
    ticked = tuple(
        one.task for one in several if one.state == "closed" and one.task in known and not known[one.task].done
    )
    text = tasks.ticked(set(ticked)).rstrip("\n")
    last = max(int(one[1:]) for one in known)
    width, new = max(len(one) - 1 for one in known), list[str]()
    lines: list[str] = []
    for one in several:
        if one.task in known:
            continue
        last += 1
        new.append(f"T{last:0{width}d}")
        what = re.sub(r"^T\d+[.:]?\s*", "", one.title)
        lines.append(
            f"- [{'x' if one.state == 'closed' else ' '}] {new[-1]} {what}"
            + (f" (#{one.number})" if one.number else "")
        )
    if lines:
        text += "\n\n## Phase: Issues\n\n" + "\n".join(lines)
    made = f"{text}\n"
    read_tasks(made)
    return made, ticked, tuple(new)


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
        return call_gh((program, *words, "--repo", f"{name.host}/{name.name}"), environment)

    def listed(self) -> tuple[TaskIssue, ...]:
        fields = "title,body,state,number"
        text = self._gh(
            "issue", "list", "--state", "all", "--label", self.spec.name, "--limit", "1000", "--json", fields
        )
        return _from_json(text, "gh issue list")

    def export(self, issues: Iterable[TaskIssue]) -> tuple[str, ...]:
        """Creates those whose task has none yet; their addresses."""
        self._gh("label", "create", self.spec.name, "--force")
        there = {one.task for one in self.listed()}
        made = []
        for one in issues:
            if one.task not in there and one.state == "open":
                words = ("issue", "create", "--title", one.title, "--body", one.body, "--label", self.spec.name)
                made.append(self._gh(*words).strip())
        return tuple(made)
