"""A pull request of promoted changes, made through `gh` and the interface of the host: no git is run for it.

The commit is made on the host, on top of the commit that HEAD names here, of the changed files alone. The branch, the
index and the files of the workspace stay as they are.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pawl.core.change import BlobReader, Change, ChangeSet, NodeKind
from pawl.core.errors import Conflicted, GitFailed, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import merge3
from pawl.core.patch import content, git_mode
from pawl.settings.config import host_variables
from pawl.settings.files import Tree
from pawl.workspace.git import opened

SECONDS = 60.0
_ADDRESS = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://(?:[^/@]+@)?|(?:[^/@]+@))(?P<host>[\w.-]+)(?::\d+)?[:/]"
    r"(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
_MISSING = re.compile(r"\bHTTP 40[49]\b|Not Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository:
    """Where `origin` lies, and what HEAD is here."""

    host: str
    name: str
    """`owner/name`."""
    commit: str
    branch: str


def hosted(tree: Tree) -> HostedRepository:
    with opened(tree) as repository:
        address = repository.config.get("remote.origin.url", "")
        head = repository.head()
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise UsageError(
            f"the remote 'origin' is not a repository of a host: {address!r}", advice="see what 'git remote -v' lists"
        )
    if not head.commit:
        raise UsageError("there is no commit yet", advice="commit and push something first")
    return HostedRepository(
        host=found["host"], name=found["name"], commit=head.commit, branch=head.branch.removeprefix("refs/heads/")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequests:
    """The host's interface, through `gh` and its log-in."""

    program: str
    repository: HostedRepository
    environment: Mapping[str, str]
    blobs: BlobReader

    def propose(self, changes: ChangeSet, title: str, text: str, branch: str) -> str:
        """The address of the new pull request."""
        base = self.repository
        try:
            tree = self._call("GET", f"git/commits/{base.commit}")["tree"]["sha"]
        except GitFailed as error:
            if _MISSING.search(error.message) is None:
                raise
            raise UsageError(
                f"{base.name} does not have the commit {base.commit[:12]} that you work on", advice="git push first"
            ) from error
        into = self._base_branch()
        made = self._call("POST", "git/trees", {"base_tree": tree, "tree": list(self._entries(changes))})
        message = {"message": f"{title}\n\n{text}".strip(), "tree": made["sha"], "parents": [base.commit]}
        commit = self._call("POST", "git/commits", message)["sha"]
        self._call("POST", "git/refs", {"ref": f"refs/heads/{branch}", "sha": commit})
        request = {"title": title, "body": text, "head": branch, "base": into}
        return str(self._call("POST", "pulls", request)["html_url"])

    def _base_branch(self) -> str:
        """The branch of the same name, where the host has it, else its default."""
        if self.repository.branch:
            try:
                return str(self._call("GET", f"branches/{quote(self.repository.branch)}")["name"])
            except GitFailed as error:
                if _MISSING.search(error.message) is None:
                    raise
        return str(self._call("GET", "")["default_branch"])

    def _entries(self, changes: ChangeSet) -> Iterator[dict[str, object]]:
        for change in changes:
            before, after = change.before, change.after
            if after is not None and after.kind is NodeKind.DIRECTORY:
                continue
            if after is None:
                if before is not None and before.kind is not NodeKind.DIRECTORY:
                    yield {"path": change.path, "mode": "100644", "type": "blob", "sha": None}
                continue
            data = base64.b64encode(self._merged(change)).decode()
            blob = self._call("POST", "git/blobs", {"content": data, "encoding": "base64"})["sha"]
            yield {"path": change.path, "mode": git_mode(after), "type": "blob", "sha": blob}

    def _merged(self, change: Change) -> bytes:
        """The content on top of that of the commit: edits that the user has not committed stay out of it."""
        after = content(change.after, self.blobs)
        if change.before is None or change.before.kind is not NodeKind.FILE:
            return after
        try:
            path = quote(change.path, errors="surrogateescape")
            stands = self._call("GET", f"contents/{path}?ref={self.repository.commit}")
        except GitFailed as error:
            if _MISSING.search(error.message) is None:
                raise
            return after
        there, before = base64.b64decode(stands.get("content") or ""), content(change.before, self.blobs)
        made = after if there == before else merge3(before, after, there)
        if made is None:
            raise Conflicted(
                f"{change.path!r} has edits that are not committed, in the same place", (), advice="commit them first"
            )
        return made

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        place = f"repos/{self.repository.name}" + (f"/{path}" if path else "")
        words = ["api", "--hostname", self.repository.host, "--method", method, place]
        words += ["--input", "-"] if body is not None else []
        given = "" if body is None else json.dumps(body)
        said = call_gh((self.program, *words), self.environment, self.repository.host, given)
        try:
            answer: dict[str, Any] = json.loads(said or "{}")
        except ValueError as error:
            raise GitFailed(f"gh: {error}", advice="see what 'gh auth status' says") from error
        return answer


def call_gh(words: Sequence[str], environment: Mapping[str, str], host: str, given: str = "") -> str:
    """The output of the program; `GitFailed` where it fails, as without a log-in."""
    # gh would send these to any host that a repository names.
    left_out = () if host == environment.get("GH_HOST") else ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
    try:
        done = subprocess.run(
            words,
            input=given,
            capture_output=True,
            text=True,
            env={name: value for name, value in host_variables(environment).items() if name not in left_out},
            timeout=SECONDS,
            check=False,
            # Not in the workspace: gh would run git there.
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise GitFailed(f"gh: {error}", advice="see what 'gh auth status' says") from error
    if done.returncode:
        raise GitFailed(f"gh: {(done.stderr or done.stdout).strip()[:300]}", advice="see what 'gh auth status' says")
    return done.stdout


def branch_name(title: str, number: int) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:50].strip("-")
    return f"pawl/{words or 'change'}-{number}"
