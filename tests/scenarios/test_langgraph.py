"""A run as a LangGraph graph, embedded: it streams, interrupts for an approval, and goes on from any checkpointer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from scenarios.story import Story, call, patch, say

from pawl.agent.executor import NODES
from pawl.agent.routes import NEXT
from pawl.core.errors import ConfigError
from pawl.core.events import ApprovalAsked, NodeEntered, RunBegun, RunEnded
from pawl.core.run import DeliveryState, RunState
from pawl.langgraph import GraphState, graph

LEAP = "return year % 4 == 0"
RIGHT = "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
WRONG = "return year % 4 == 1"
FIX = (call("file_read", path="dates.py"), patch("dates.py", LEAP, RIGHT), say("Centuries are leap years only by 400."))
THREAD = {"configurable": {"thread_id": "t1"}}


def request(story: Story, text: str, **more: object) -> dict:
    return {"request": {"text": text, "model": f"scripted:{story.script}", **more}}


@pytest.fixture
def notes(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """A workspace without tests, in which a run is quick."""
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"notes.txt": "begin\n"})
    story.model_says(patch("notes.txt", "begin\n", "begin\nmiddle\n"), say("Written."))
    return story


@pytest.mark.spec("B1")
def test_the_graph_has_the_ways_of_the_table_and_no_other():
    edges = {(edge.source, edge.target) for edge in graph().get_graph().edges}
    ends = {(source, "end" if target == "__end__" else target) for source, target in edges}
    ways = {(str(node), str(following)) for node in NODES for following in NEXT[node].values()}
    assert ends == ways | {("__start__", "begin"), ("begin", "intent")}


@pytest.mark.whole
@pytest.mark.spec("B1")
def test_langgraph_takes_a_run_the_way_that_pawl_walks_it(story: Story):
    """A first attempt fails its tests, so that the run comes by one node twice."""
    before, ways = story.files(), []
    script = (patch("dates.py", LEAP, WRONG), say("Done."), patch("dates.py", WRONG, RIGHT), say("By 400."))
    for engine in ("pawl", "langgraph"):
        story.user_writes(before)
        story.events.clear()
        story.model_says(*script)
        if engine == "pawl":
            story.do("fix is_leap", approve="never")
            events = story.events
        else:
            asked = request(story, "fix is_leap", approval="never")
            events = list(graph(story.workspace).stream(asked, stream_mode="custom"))
        report = next(event.report for event in events if isinstance(event, RunEnded))
        places = [(one.place.at, one.place.attempt) for one in events if isinstance(one, NodeEntered)]
        told = (report.delivery, report.before, report.after, report.requests, report.answer, report.score)
        ways.append((places, story.files(), told))
        assert report.delivery is DeliveryState.DONE and RIGHT in story.read("dates.py")
    assert ways[0] == ways[1]
    assert [at for at, _ in ways[0][0]].count("verify") == 2


@pytest.mark.whole
@pytest.mark.spec("B1", "B7")
def test_it_interrupts_for_an_approval_and_goes_on_in_another_process_from_sqlite(notes: Story, tmp_path: Path):
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        app = graph(notes.workspace, checkpointer=saver)
        events = list(app.stream(request(notes, "write the middle into notes.txt"), THREAD, stream_mode="custom"))
        (asked,) = app.get_state(THREAD).interrupts
    assert [type(event) for event in (events[0], *events[-2:])] == [RunBegun, ApprovalAsked, RunEnded]
    assert asked.value["kind"] == "change" and "+middle" in asked.value["patch"]
    assert notes.read("notes.txt") == "begin\n"
    code = (
        "import json, sys\n"
        "from langgraph.checkpoint.sqlite import SqliteSaver\n"
        "from langgraph.types import Command\n"
        "from pawl.langgraph import graph\n"
        "workspace, threads, digest = sys.argv[1:]\n"
        "with SqliteSaver.from_conn_string(threads) as saver:\n"
        "    answer = Command(resume={'answer': 'approve', 'digest': digest})\n"
        "    thread = {'configurable': {'thread_id': 't1'}}\n"
        "    print(json.dumps(graph(workspace, checkpointer=saver).invoke(answer, thread)))\n"
    )
    words = [str(notes.workspace), str(tmp_path / "threads.db"), asked.value["digest"]]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    state = json.loads(done.stdout)
    assert (state["at"], state["report"]["delivery"], state["report"]["entry"]) == ("end", "DONE", 1)
    assert notes.read("notes.txt") == "begin\nmiddle\n"


@pytest.mark.spec("B7")
def test_an_answer_that_cannot_be_read_is_asked_for_again_with_the_mistake(notes: Story):
    app = graph(notes.workspace, checkpointer=InMemorySaver())
    app.invoke(request(notes, "write the middle into notes.txt"), THREAD)
    digest = app.get_state(THREAD).interrupts[0].value["digest"]
    for answer in ("yes", {"answer": "maybe", "digest": digest}, {"answer": "approve", "digest": digest, "hunks": [7]}):
        app.invoke(Command(resume=answer), THREAD)
        assert app.get_state(THREAD).interrupts[0].value["mistake"]
    stale = app.invoke(Command(resume={"answer": "approve", "digest": "0" * 64}), THREAD)
    assert stale["__interrupt__"][0].value["digest"] == digest and notes.read("notes.txt") == "begin\n"
    state = app.invoke(Command(resume={"answer": "reject", "digest": digest, "reason": "not so"}), THREAD)
    assert (state["report"]["delivery"], state["report"]["rejected"]) == ("NEEDS_WORK", "not so")


@pytest.mark.spec("B7")
def test_each_call_is_asked_about_where_the_user_wants_that(notes: Story):
    app = graph(notes.workspace, checkpointer=InMemorySaver())
    state = app.invoke(request(notes, "write the middle into notes.txt", approval="each"), THREAD)
    kinds = []
    while interrupts := state.get("__interrupt__"):
        shown = interrupts[0].value
        kinds.append((shown["kind"], shown["tool"]))
        state = app.invoke(Command(resume={"answer": "approve", "digest": shown["digest"]}), THREAD)
    assert kinds == [("call", "strict_patch"), ("change", "")]
    assert notes.read("notes.txt") == "begin\nmiddle\n"


def test_a_run_that_waits_in_a_graph_can_be_answered_by_pawl_and_the_graph_knows(notes: Story):
    app = graph(notes.workspace, checkpointer=InMemorySaver())
    waiting = app.invoke(request(notes, "write the middle into notes.txt"), THREAD)
    with notes.session() as session:
        assert notes.approve(session.waiting()).delivery is DeliveryState.DONE
    state = app.invoke(None, THREAD)
    assert (state["run"], state["at"], state["report"]["delivery"]) == (waiting["run"], "end", "DONE")


def test_a_thread_is_a_conversation(notes: Story):
    notes.model_says(
        {"match": {"user": "what does"}, **say("notes.txt says begin (notes.txt:1).")},
        {"match": {"user": "and then"}, **say("Nothing (notes.txt:1).")},
    )
    app = graph(notes.workspace, checkpointer=InMemorySaver())
    first = app.invoke(request(notes, "what does notes.txt say?", mode="chat"), THREAD)
    second = app.invoke(request(notes, "and then?", mode="chat"), THREAD)
    assert first["run"] != second["run"] and first["conversation"] == second["conversation"]
    with notes.session() as session:
        said = [one.message.text for one in session.transcript(first["conversation"])]
    assert [text for text in said if text.endswith("?")] == ["what does notes.txt say?", "and then?"]


def test_what_stops_a_run_is_raised_and_the_thread_goes_on_when_the_cause_is_gone(notes: Story):
    notes.model_says()
    app = graph(notes.workspace, checkpointer=InMemorySaver())
    with pytest.raises(ConfigError):
        app.invoke(request(notes, "write the middle into notes.txt", approval="never"), THREAD)
    notes.model_says(patch("notes.txt", "begin\n", "begin\nmiddle\n"), say("Written."))
    state = app.invoke(None, THREAD)
    assert state["report"]["delivery"] == "DONE" and notes.read("notes.txt") == "begin\nmiddle\n"
    with notes.session() as session:
        assert [row.state for row in session.runs()] == [RunState.ENDED]


def test_it_is_a_node_of_another_graph_and_runs_where_callers_are_asynchronous(notes: Story):
    outer = StateGraph(GraphState)
    outer.add_node("change", graph(notes.workspace))
    outer.add_edge(START, "change")
    outer.add_edge("change", END)
    app = outer.compile(checkpointer=InMemorySaver())

    async def both() -> tuple[dict, dict]:
        waiting = await app.ainvoke(request(notes, "write the middle into notes.txt"), THREAD)
        answer = {"answer": "approve", "digest": waiting["__interrupt__"][0].value["digest"]}
        return waiting, await app.ainvoke(Command(resume=answer), THREAD)

    _, done = asyncio.run(both())
    assert done["report"]["delivery"] == "DONE" and notes.read("notes.txt") == "begin\nmiddle\n"


@pytest.fixture
def postgres() -> Iterator[str]:
    """The address of a server of its own, on a socket in a folder; it refuses to run as root."""
    pytest.importorskip("langgraph.checkpoint.postgres", reason="needs langgraph-checkpoint-postgres")
    initdb, control = (shutil.which(name) for name in ("initdb", "pg_ctl"))
    if initdb is None or control is None:
        pytest.skip("needs a PostgreSQL server")
    top = tempfile.mkdtemp(prefix="pawl-postgres-")
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(top, user)

    def called(*words: str) -> None:
        subprocess.run(words, check=True, user=user, cwd=top, stdout=subprocess.DEVNULL)

    called(initdb, "-D", f"{top}/data", "-U", "pawl", "-A", "trust")
    server = (control, "-D", f"{top}/data", "-w", "-l", f"{top}/log")
    called(*server, "-o", f"-c listen_addresses='' -k {top}", "start")
    yield f"host={top} user=pawl dbname=postgres"
    called(*server, "-m", "fast", "stop")
    shutil.rmtree(top)


@pytest.mark.spec("B1")
def test_it_interrupts_and_goes_on_from_postgres(notes: Story, postgres: str):
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        app = graph(notes.workspace, checkpointer=saver)
        digest = app.invoke(request(notes, "write the middle into notes.txt"), THREAD)["__interrupt__"][0].value[
            "digest"
        ]
    with PostgresSaver.from_conn_string(postgres) as saver:
        app = graph(notes.workspace, checkpointer=saver)
        state = app.invoke(Command(resume={"answer": "approve", "digest": digest}), THREAD)
    assert state["report"]["delivery"] == "DONE" and notes.read("notes.txt") == "begin\nmiddle\n"
