"""The conversation graph in LangGraph: compiled from the routing table, durable after each node, resumable anywhere.

The state of the graph is a place: ids and numbers. Texts, changes and findings live in the run's record. A node that
was interrupted runs again from its start, so that its effects go through the record and the journal, which know what
was done. Importing the engine takes longer than most nodes, so that a run begins while it is loaded.
"""

from __future__ import annotations

import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict

from pawl.agent import delivery as delivering
from pawl.agent import nodes as changing
from pawl.agent import nodes as climbing
from pawl.agent import nodes as closing
from pawl.agent import opening_nodes as errands
from pawl.agent import opening_nodes as understanding
from pawl.agent.routing import NEXT, NodeOutcome, RunNode, moved
from pawl.agent.workbench import Workbench
from pawl.core.run import ApprovalRequest, RunCursor

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


FILE = "graph.db"
Work = Callable[[Workbench, RunCursor], NodeOutcome]
Step = Callable[[RunCursor], RunCursor]
"""Does the work of a place and says where the run stands then."""

NODES: Mapping[RunNode, Work] = MappingProxyType(
    {
        RunNode.INTENT: understanding.intent,
        RunNode.READ: errands.read,
        RunNode.RUN: errands.run,
        RunNode.UNDO: errands.undo,
        RunNode.PROFILE: errands.profile,
        RunNode.MEND: errands.mend,
        RunNode.PLAN: understanding.plan,
        RunNode.PROVE: changing.prove,
        RunNode.ACT: changing.act,
        RunNode.VERIFY: changing.verify,
        RunNode.CLIMB: climbing.climb,
        RunNode.DELIVER: delivering.deliver,
        RunNode.APPROVE: delivering.approve,
        RunNode.APPLY: delivering.apply,
        RunNode.KEEP: delivering.keep,
        RunNode.QA: closing.qa,
        RunNode.EVALUATE: closing.evaluate,
        RunNode.REPORT: closing.report,
    }
)
"""What is done at each node; there is nothing to do at the end."""


class GraphState(TypedDict):
    run: str
    at: str
    task: int
    attempt: int


def next_place(bench: Workbench, place: RunCursor) -> RunCursor:
    """One step of a run: the node's work, then the table."""
    return moved(place, NODES[RunNode(place.at)](bench, place))


def wait_for_answer(question: ApprovalRequest) -> Mapping[str, object]:
    """Pauses the graph durably; returns the answer when it is resumed with one."""
    from langgraph.types import interrupt

    answer: Mapping[str, object] = interrupt({"kind": question.kind, "digest": question.digest})
    return answer


class GraphEngine:
    """The compiled graph over its file of checkpoints. Loading it takes longer than many a run: `load` begins early, in
    the background, and a run that never waits does without."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._loading: threading.Thread | None = None

    def load(self) -> None:
        if self._loading is None:
            # Filled here, because Python lets a second thread see its variables half filled.
            sysconfig.get_config_vars()
            self._loading = threading.Thread(target=_load, daemon=True)
            self._loading.start()

    @property
    def is_loaded(self) -> bool:
        return self._loading is not None and not self._loading.is_alive()

    def go(self, place: RunCursor, step: Step, answer: Mapping[str, object] | None = None) -> RunCursor:
        """Takes the run from its place to its end, or to where it waits. An answer is for what it waits for."""
        from langgraph.types import Command

        self.load()
        assert self._loading is not None
        self._loading.join()
        with self._compiled(step) as app:
            where: Any = {"configurable": {"thread_id": place.run}, "recursion_limit": 1000}
            known = app.get_state(where)
            given: Any = None
            if not known.next:
                given = asdict(place)
            elif answer is not None:
                given = Command(resume=dict(answer))
            state = app.invoke(given, where, durability="sync")
            if not app.get_state(where).next:
                assert app.checkpointer is not None and not isinstance(app.checkpointer, bool)
                app.checkpointer.delete_thread(place.run)
        return RunCursor(state["run"], state["at"], state["task"], state["attempt"])

    @contextmanager
    def _compiled(self, step: Step) -> Iterator[CompiledStateGraph[GraphState, None, GraphState, GraphState]]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        self._path.touch(mode=0o600)
        with SqliteSaver.from_conn_string(str(self._path)) as saver:
            yield graph(step).compile(checkpointer=saver)


def graph(step: Step) -> Any:
    """The graph of the table. Every node has the way out that the table gives it, and no other."""
    from langgraph.graph import END, START, StateGraph

    def names(nodes: Iterator[RunNode]) -> dict[Any, str]:
        return {str(node): END if node is RunNode.END else str(node) for node in nodes}

    def run(state: GraphState) -> dict[str, object]:
        return asdict(step(RunCursor(state["run"], state["at"], state["task"], state["attempt"])))

    made = StateGraph(GraphState)
    for node in NODES:
        made.add_node(str(node), run)
        made.add_conditional_edges(str(node), _at, names(iter(dict.fromkeys(NEXT[node].values()))))
    # A run may enter anywhere: it may have begun before the engine was loaded.
    made.add_conditional_edges(START, _at, names(iter(NODES)))
    return made


def _at(state: GraphState) -> str:
    return state["at"]


def _load() -> None:
    import langgraph.checkpoint.sqlite
    import langgraph.graph
    import langgraph.types  # noqa: F401
