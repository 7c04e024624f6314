"""The one builder of an agent's context: terms, prompts and tools of a role, and what it is told beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pawl.agent import workspace_memory
from pawl.agent.context import AgentContext
from pawl.agent.context_watch import ContextWatch
from pawl.agent.instructions import instructions_of
from pawl.agent.policy import Policy, prompts
from pawl.agent.tools.toolbox import ToolSession
from pawl.core.errors import PawlError
from pawl.core.events import RequestAnswered, RunEvent, Warned
from pawl.core.run import Budget, Detail, RoleName, RunTerms
from pawl.models.configuration import ModelConfig, model_config
from pawl.models.router import Models
from pawl.models.telemetry import RequestBook, Telemetry, metered
from pawl.sandbox.cancel import CancelToken
from pawl.settings.env_file import LARGEST_BYTES, environment_of
from pawl.settings.project_files import read_text
from pawl.settings.trust import is_trusted
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

MOST_MENTIONED, MOST_LINES = 3, 400
"""Files that the user names and that are no longer than this are read before the model is asked."""
_PATH = re.compile(r"(?<![\w./:@-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}\b")

Listener = Callable[[RunEvent], object]


def configured(shop: Project, model: str = "") -> ModelConfig:
    """The user's settings for models, with another default model if one is named."""
    trusted = is_trusted(shop.config, shop.workspace)
    environment = environment_of(
        shop.config.environment,
        user=shop.config.file.parent / ".env",
        workspace=read_text(shop.workspace, ".env", LARGEST_BYTES) if trusted else "",
    )
    config = model_config(shop.config, environment)
    return config.with_model(model) if model else config


def mentioned(text: str, most: int = MOST_MENTIONED * 4) -> Iterator[str]:
    """The paths of files in the user's own words, each once."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        if len(found) < most:
            found.setdefault(match[0].removeprefix("./").rstrip("."))
    yield from found


def line_count(files: Files, path: str) -> int | None:
    """None for what is no file that may be read."""
    try:
        data = files.read(path)
    except (PawlError, OSError):
        return None
    return data.count(b"\n") + (not data.endswith(b"\n"))


def read_ahead(files: Files, text: str) -> list[str]:
    """The short files that the user names, so that the model need not ask for them."""
    counted = ((path, line_count(files, path)) for path in mentioned(text))
    return [path for path, lines in counted if lines is not None and lines <= MOST_LINES][:MOST_MENTIONED]


def instructions(shop: Project, desk: ToolSession, request: str, listen: Listener) -> tuple[str, ...]:
    """The user's own AGENTS.md, then the workspace's down to the files that the request names."""
    found = instructions_of(shop.config, desk.gated, tuple(mentioned(request)))
    for notice in found.notices:
        listen(Warned(notice))
    return (found.text,) if found.parts else ()


def standing_context(shop: Project, desk: ToolSession, request: str, listen: Listener) -> tuple[str, ...]:
    """Instructions, the memories that fit the request, and the memory bank."""
    told = instructions(shop, desk, request, listen)
    return (*told, *workspace_memory.told(shop, request), *workspace_memory.bank_told(shop, desk.gated))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuilder:
    """Everything that the agents of one run have in common."""

    shop: Project
    policy: Policy
    terms: RunTerms
    models: Models
    telemetry: Telemetry
    desk: ToolSession
    limits: Budget
    cancel: CancelToken | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """For the prompts, beside the workspace's folder."""

    def build(
        self,
        role: RoleName,
        watch: ContextWatch,
        *,
        context: tuple[str, ...],
        listen: Listener,
        hides: Callable[[RunEvent], bool] = lambda event: False,
    ) -> AgentContext:
        """The context of a role; `hides` says which events were shown before."""
        policy = self.policy.narrowed_to(self.desk.names)
        model = self.models.router.conversation()
        book = RequestBook(self.shop, model, self.telemetry)
        sampling = self.models.config.sampling
        most_output = self.models.most_output(self.terms.model_for(role))

        def hear(event: RunEvent) -> None:
            watch.hear(event)
            if hides(event):
                return
            listen(event)
            if isinstance(event, RequestAnswered):
                listen(metered(self.models, event))

        return AgentContext(
            terms=self.terms,
            role=policy.role(role),
            policy=policy,
            prompts=prompts(self.shop.config, self.shop.workspace),
            variables={"project_root": self.shop.workspace, "user_input": "", **self.variables},
            model=model,
            tools=self.desk,
            record=book.record,
            listen=hear,
            clean=watch.clean,
            compress=watch.compress,
            context=context,
            limits=self.limits,
            sampling=replace(sampling, max_output=min(sampling.max_output, most_output)),
            detail=Detail(self.shop.config.settings.detail),
            cancel=self.cancel,
        )
