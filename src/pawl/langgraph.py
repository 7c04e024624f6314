"""Runs of Pawl as a LangGraph graph, for applications that embed them: `graph("path/to/workspace", checkpointer=...)`.

Its nodes and edges are those of the routing table. A node does its work through the run's record, as the walker of the
command line does: the checkpoint holds ids, and `pawl approve` and `pawl do --resume` can continue the same run. Needs
the extra `langgraph`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from pawl.agent.executor import NODES
from pawl.agent.routes import NEXT, RunNode
from pawl.agent.session import Session
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.run import ApprovalAnswer, ApprovalRequest, ApprovalResponse, RunCursor, RunRequest, RunRow
from pawl.settings.config import load
from pawl.settings.installation import with_extra
from pawl.workspace.paths import find_workspace
from pawl.workspace.project import Project, new_run_id

try:
    from langgraph.config import get_stream_writer
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer, Command, interrupt
except ImportError as error:
    raise ImportError(f"pawl.langgraph needs LangGraph; install it with: {with_extra('langgraph')}") from error

BEGIN = "begin"


class GraphState(TypedDict, total=False):
    """The request, as text or as the fields of `RunRequest`; then where its run stands, and the report at its end."""

    request: str | dict[str, Any]
    conversation: str
    """The conversation of the thread's run before; the next request goes on with it."""
    run: str
    at: str
    task: int
    attempt: int
    report: dict[str, Any]


def graph(
    workspace: str | Path = ".",
    *,
    checkpointer: Checkpointer = None,
    environment: Mapping[str, str] | None = None,
) -> CompiledStateGraph[GraphState, None, GraphState, GraphState]:
    """Compile the graph over a workspace, with the user's settings or those of `environment`.

    Stream mode `custom` gives the events of the run. A run that waits for the user interrupts; resume it with the
    fields of `ApprovalResponse`.
    """
    opener = _Opener(Path(workspace), environment)
    made = StateGraph(GraphState)
    made.add_node(BEGIN, _begin, destinations=(str(RunNode.INTENT),))
    made.add_edge(START, BEGIN)
    for node in NODES:
        ways = dict.fromkeys(_target(following) for following in NEXT[node].values())
        made.add_node(str(node), _Node(opener, node), destinations=tuple(ways))
    return made.compile(checkpointer=checkpointer, name="pawl")


def _begin(state: GraphState) -> Command[str]:
    """Name a new run. It is recorded by the first node, so that it is recorded once."""
    place = RunCursor(new_run_id(), RunNode.INTENT.value)
    return Command(update={**asdict(place), "report": {}}, goto=place.at)


@dataclass(frozen=True)
class _Opener:
    workspace: Path
    environment: Mapping[str, str] | None

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A node may run in any thread and any process: each opens the workspace for itself."""
        config = load(self.environment)
        with Project.open(config, find_workspace(self.workspace, config, exact=True)) as project:
            yield Session(project, get_stream_writer())


@dataclass(frozen=True)
class _Node:
    """The work of one node on the run that the state names."""

    opener: _Opener
    node: RunNode

    def __call__(self, state: GraphState) -> Command[str]:
        run = state["run"]
        with self.opener.session() as session:
            if self.node is RunNode.INTENT and _row(session, run) is None:
                session.shop.run_id = run
                session.begin(_order(state))
            place = self._moved(session, run)
            update: dict[str, Any] = asdict(place)
            if place.at == RunNode.END:
                report = session.report(run)
                session.end()
                update["conversation"] = report.conversation
                # As JSON has it, so that any checkpointer can keep it.
                update["report"] = json.loads(json.dumps(asdict(report), default=str))
            return Command(update=update, goto=_target(RunNode(place.at)))

    def _moved(self, session: Session, run: str) -> RunCursor:
        """Where the run stands after this node. The record decides: after a crash it may be ahead of the checkpoint."""
        row = _row(session, run)
        assert row is not None
        place = session.step(run) if row.place.at == self.node else row.place
        mistake = ""
        while place.at == self.node and (question := session.report(run).question) is not None:
            given = interrupt(_shown(session, run, question, mistake))
            try:
                session.accept(run, _response(given))
            except UsageError as error:
                mistake = f"{error.message}; {error.advice}"
            else:
                place = session.step(run)
        return place


def _row(session: Session, run: str) -> RunRow | None:
    with suppress(UnknownEntry):
        return session.shop.store.runs.get(session.shop.workspace, run)
    return None


def _order(state: GraphState) -> RunRequest:
    request = state["request"]
    fields = {"text": request} if isinstance(request, str) else dict(request)
    return RunRequest(**{"conversation": state.get("conversation", ""), **fields})


def _shown(session: Session, run: str, question: ApprovalRequest, mistake: str) -> dict[str, Any]:
    patch = session.patch(run) if question.kind == "change" else ""
    more = {"patch": patch} if patch else {}
    return {"run": run, **json.loads(json.dumps(asdict(question))), **more, **({"mistake": mistake} if mistake else {})}


def _response(given: object) -> ApprovalResponse:
    if not isinstance(given, Mapping) or not {"answer", "digest"} <= given.keys():
        raise UsageError("an answer has 'answer' and 'digest'", advice="take the digest from what was shown")
    unknown = given.keys() - ApprovalResponse.__dataclass_fields__.keys()
    if unknown or given["answer"] not in list(ApprovalAnswer):
        what = f"unknown {', '.join(sorted(map(str, unknown)))}" if unknown else f"no answer {given['answer']!r}"
        raise UsageError(f"the answer cannot be read: {what}", advice="its fields are those of ApprovalResponse")
    fields = {**given, "answer": ApprovalAnswer(given["answer"]), "hunks": tuple(given.get("hunks", ()))}
    return ApprovalResponse(**fields)


def _target(node: RunNode) -> str | Literal["__end__"]:
    return END if node is RunNode.END else str(node)
