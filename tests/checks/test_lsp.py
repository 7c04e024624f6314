"""The language server client: the protocol against a server that misbehaves on request, and the real ty and ruff."""

import asyncio
import dataclasses
import os
import sys
import textwrap
from pathlib import Path

import pytest

from pawl.checks.lsp.client import Document, LanguageServer, LanguageServerStart, Span, applied
from pawl.checks.lsp.servers import server, servers
from pawl.checks.lsp.verdicts import Host
from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import ParseFailed, ServerUnavailable, TimedOut
from pawl.repair.recovery import advised, recover, undefined_name
from pawl.repair.sources import RecoverySituation, symbols_of

pytestmark = pytest.mark.spec("A12")
BIN = Path(sys.executable).parent
PACKAGE = Path(__file__).parents[2] / "src" / "pawl"
HOST = Host(python=sys.executable, package=str(PACKAGE))

# Does what the text of a document or the name of a request tells it to.
FAKE = textwrap.dedent(
    """
    import json, os, sys, threading

    def send(message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Type: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(data) + data)
        sys.stdout.buffer.flush()

    early = []

    def next_message():
        return early.pop(0) if early else receive()

    def receive():
        length = 0
        while (line := sys.stdin.buffer.readline()) not in (b"\\r\\n", b""):
            length = int(line.split(b":")[1])
        return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit(0)

    def ask(method, params):
        send({"id": "mine", "method": method, "params": params})
        while "method" in (message := receive()):
            early.append(message)
        return message["result"]

    while True:
        message = next_message()
        method, number, params = message["method"], message.get("id"), message.get("params")
        if method == "initialize":
            send({"id": number, "result": {"capabilities": {"codeActionProvider": {"resolveProvider": True}}}})
        elif method == "initialized":
            told = ask("workspace/configuration", {"items": [{"section": "fake.depth"}, {"section": "other"}]})
            edit = ask("workspace/applyEdit", {"edit": {}})
            ask("client/registerCapability", {"registrations": [{"id": "1", "method": "workspace/watched"}]})
            ask("window/workDoneProgress/create", {"token": 1})
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            text = document.get("text") or params["contentChanges"][0]["text"]
            if text == "die":
                sys.exit(3)
            if text == "slow":
                nothing = {"uri": document["uri"], "diagnostics": []}
                send({"method": "textDocument/publishDiagnostics", "params": nothing})
                threading.Event().wait(0.6)
            for count in (1, 2) if text != "silence" else ():
                found = [{"message": text, "range": {}}] * count
                params = {"uri": document["uri"], "diagnostics": found}
                send({"method": "textDocument/publishDiagnostics", "params": params})
        elif method == "textDocument/codeAction":
            place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
            change = {"textDocument": params["textDocument"], "edits": [{"range": place, "newText": "x"}]}
            later = {"title": "later", "data": {"documentChanges": [change]}}
            send({"id": number, "result": [later, {"title": "never", "command": "x"}]})
        elif method == "codeAction/resolve":
            send({"id": number, "result": {**params, "edit": params.get("data")}})
        elif method == "read":
            send({"id": number, "result": None})
            send({"method": "experimental/serverStatus", "params": {"quiescent": params["quiescent"]}})
        elif method == "told":
            send({"id": number, "result": [told, edit]})
        elif method == "garbage":
            sys.stdout.buffer.write(b"Content-Length: 5\\r\\n\\r\\n{...}")
            sys.stdout.buffer.flush()
        elif method == "refuse":
            send({"id": number, "error": {"code": 1, "message": "not today"}})
        elif method == "die":
            sys.exit(3)
        elif method == "shutdown":
            send({"id": number, "result": None})
        elif method == "exit":
            sys.exit(0)
    """
)


@pytest.fixture
def fake(tmp_path):
    """How the server that misbehaves is started."""
    (tmp_path / "fake.py").write_text(FAKE)
    return LanguageServerStart(
        name="fake",
        words=(sys.executable, str(tmp_path / "fake.py")),
        root=str(tmp_path),
        settings={"fake": {"depth": 3}},
    )


def with_server(start, work, **options):
    async def run():
        async with LanguageServer(start, **options) as opened:
            pid = opened._process.pid
            answer = await work(opened)
        return answer, pid

    answer, pid = asyncio.run(run())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    return answer


def test_what_the_server_asks_is_answered(fake):
    async def work(opened):
        return await opened.request("told", None)

    configuration, edit = with_server(fake, work)
    assert configuration == [3, None]
    assert edit["applied"] is False


def test_pushed_diagnostics_are_the_last_ones_of_the_text_that_stands(fake):
    async def work(opened):
        opened.show("a.py", "python", "one")
        first = await opened.diagnostics("a.py")
        opened.show("a.py", "python", "two")
        return first, await opened.diagnostics("a.py")

    first, second = with_server(fake, work)
    assert [[one["message"] for one in found] for found in (first, second)] == [["one"] * 2, ["two"] * 2]


def test_a_server_that_first_pushes_nothing_and_then_what_it_found_is_heard_out(fake):
    async def work(opened):
        opened.show("a.py", "python", "slow")
        return await opened.diagnostics("a.py")

    assert len(with_server(dataclasses.replace(fake, quiet=30.0), work, limit=5.0)) == 2


def test_what_a_server_says_before_it_has_read_the_project_does_not_count(fake):
    async def work(opened):
        opened.show("a.py", "python", "one")
        await opened.request("read", {"quiescent": False})
        with pytest.raises(TimedOut, match="has not read the project"):
            await opened.diagnostics("a.py")
        await opened.request("read", {"quiescent": True})
        return await opened.diagnostics("a.py")

    assert len(with_server(dataclasses.replace(fake, says_ready=True), work, limit=2.0)) == 2


def test_actions_are_resolved_and_commands_left_out(fake):
    async def work(opened):
        opened.show("a.py", "python", "one")
        (action,) = await opened.actions("a.py", {"range": {}})
        return action["title"], opened.edits(action)

    title, edits = with_server(fake, work)
    assert title == "later"
    assert [edit["newText"] for edit in edits["a.py"]] == ["x"]


@pytest.mark.spec("A11")
def test_a_server_that_says_nothing_is_given_up_after_the_limit(fake):
    async def work(opened):
        with pytest.raises(TimedOut, match=r"fake did not answer 'nothing' within 0\.2 s"):
            await opened.request("nothing", None, limit=0.2)
        opened.show("a.py", "python", "silence")
        with pytest.raises(TimedOut, match=r"said nothing about 'a\.py'"):
            await opened.diagnostics("a.py")

    with_server(fake, work, limit=1.0)


@pytest.mark.parametrize("method", ["die", "garbage"])
def test_a_server_that_ends_or_talks_nonsense_can_be_started_again_with_its_documents(fake, method):
    async def work(opened):
        opened.show("a.py", "python", "one")
        with pytest.raises(ServerUnavailable, match="fake has ended"):
            await opened.request(method, None)
        with pytest.raises(ServerUnavailable):
            await opened.request("told", None)
        await opened.restart()
        return await opened.diagnostics("a.py")

    assert len(with_server(fake, work)) == 2


def test_a_refusal_and_a_program_that_is_not_there_are_named(fake, tmp_path):
    async def work(opened):
        with pytest.raises(ParseFailed, match="fake refuses: not today"):
            await opened.request("refuse", None)

    with_server(fake, work)

    async def start():
        async with LanguageServer(LanguageServerStart(name="gone", words=("/no/such/server",), root=str(tmp_path))):
            pass

    with pytest.raises(ServerUnavailable, match="gone cannot be started: No such file"):
        asyncio.run(start())


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_positions_are_counted_in_the_agreed_encoding(encoding, character):
    document = Document("one\r\n😀é x\n", encoding)
    assert document.offset({"line": 1, "character": character}) == len("one\r\n😀é")
    assert document.offset({"line": 1, "character": 99}) == len("one\r\n😀é x")
    assert document.offset({"line": 9, "character": 0}) == len(document.text)


def test_edits_of_one_place_keep_their_order():
    assert applied("abc", [Span(1, 1, "1"), Span(1, 1, "2"), Span(2, 3, "")]) == "a12b"


@pytest.mark.parametrize("name", ["ty", "ruff"])
def test_the_real_servers_find_an_undefined_name(tmp_path, name):
    known = server(name)
    start = LanguageServerStart(
        name=name,
        words=(str(BIN / known.program), *known.arguments),
        root=str(tmp_path),
        options=known.options,
        settings=known.settings_for(sys.executable),
    )

    async def work(opened):
        opened.show("a.py", "python", "print(missing)\n")
        first = await opened.diagnostics("a.py")
        opened.show("a.py", "python", "print(1)\n")
        return first, await opened.diagnostics("a.py")

    first, second = with_server(start, work)
    assert [one["code"] in known.undefined for one in first] == [True]
    assert second == []


def test_every_server_says_which_files_it_knows():
    assert [one.name for one in servers() if one.language("a.py")] == ["ty", "ruff", "pyrefly", "basedpyright"]
    assert server("ty").language("a.ts") is None
    assert server("ty").settings_for("") == {"ty": {"configuration": {"environment": {}}}}


PROJECT = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Basket:\n    def __init__(self, prices: list[int]) -> None:\n        self.prices = prices\n",
    "shop/store.py": "class Basket:\n    pass\n",
    "use.py": '"""Uses."""\n\nimport re\n\n\ndef first(prices: list):\n    return quantiles(prices), Basket(prices)\n',
}


def asked(given, name, host=HOST):
    finding = Diagnostic(tool="pytest", message=f"NameError: name '{name}' is not defined", path="use.py", line=7)
    assert undefined_name(finding) == name
    symbols = symbols_of(PROJECT)
    known = recover(finding, PROJECT, symbols)
    undefined = RecoverySituation(finding=finding, groups={"name": name}, sources=PROJECT, symbols=symbols)
    return advised(given, host, undefined, known)


def test_a_name_that_the_map_does_not_know_is_imported_as_the_server_says(subject):
    candidates, skipped = asked(subject(PROJECT), "quantiles")
    assert skipped == ""
    assert [one.why for one in candidates][:1] == ["add `from statistics import quantiles` (ty)"]
    text = candidates[0].applied(PROJECT)["use.py"]
    assert text.startswith('"""Uses."""\n\nimport re\nfrom statistics import quantiles\n\n\ndef first')


def test_of_several_imports_the_one_that_raises_no_new_diagnostic_comes_first(subject):
    known = recover(
        Diagnostic(tool="x", message="NameError: name 'Basket' is not defined", path="use.py", line=7), PROJECT
    )
    assert "cart" in known[0].why
    files = {**PROJECT, "shop/cart.py": PROJECT["shop/store.py"], "shop/store.py": PROJECT["shop/cart.py"]}
    candidates, _ = asked(subject(files), "Basket")
    assert "shop.store" in candidates[0].why


@pytest.mark.spec("A11")
def test_without_a_server_the_map_stands_and_the_reason_is_said(subject):
    candidates, skipped = asked(subject(PROJECT, tools=False), "Basket")
    assert [one.why for one in candidates][:2] == [
        "add `from shop.cart import Basket`",
        "add `from shop.store import Basket`",
    ]
    assert skipped
    assert "/no/python" in asked(subject(PROJECT), "Basket", Host(python="/no/python", package=""))[1]
