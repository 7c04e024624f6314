"""Other pages, other programs and hostile addresses before the server of the page: threats of a local server."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from nursery import PATIENCE
from sandbox.site import until
from ui.cli.page_client import Page, page
from ui.cli.projects import Project

from pawl.ui.web.event_feed import MOST_LISTENERS
from pawl.ui.web.page_server import MOST_CONNECTIONS

pytestmark = pytest.mark.hostile


@pytest.fixture
def tab(project: Project) -> Iterator[Page]:
    pawl = project({"a.py": "x = 1\n", ".env": "SHOP_TOKEN=abcdefgh12345678\n"})
    (pawl.workspace / "out").symlink_to("/etc")
    with page(pawl.workspace) as made:
        yield made


def raw(port: int, text: str) -> bytes:
    """The answer to bytes that no client of a library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(text.encode("latin-1"))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return str(answer.status).encode() + b" " + answer.read()


@pytest.mark.attack("A55")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "0.0.0.0:{port}",
        "localhost.:{port}",
        "127.0.0.1",
        "localhost",
        "[::1]:{port}",
        "",
    ],
)
def test_a_name_that_is_not_its_own_is_not_answered(tab: Page, host: str):
    named = host.format(port=tab.port)
    for path in ("/", "/api/state"):
        said = raw(tab.port, f"GET {path} HTTP/1.1\r\nHost: {named}\r\nAuthorization: Bearer {tab.token}\r\n\r\n")
        assert said.startswith((b"421", b"400")) and b"Pawl</title>" not in said


@pytest.mark.attack("A55")
def test_two_names_or_none_are_not_answered(tab: Page):
    own = f"127.0.0.1:{tab.port}"
    for headers in (f"Host: {own}\r\nHost: evil.example\r\n", ""):
        said = raw(tab.port, f"GET /api/state HTTP/1.1\r\n{headers}Authorization: Bearer {tab.token}\r\n\r\n")
        assert said.startswith((b"421", b"400"))


@pytest.mark.attack("A56")
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://"]
)
def test_a_page_of_another_origin_does_nothing(tab: Page, origin: str):
    answer = tab.ask("POST", "/api/requests", {"text": "hello"}, Origin=origin)
    assert answer.status == 403 and tab.get("/api/runs") == []
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.attack("A56")
def test_a_form_or_a_plain_text_does_nothing(tab: Page):
    own = f"http://127.0.0.1:{tab.port}"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = tab.ask("POST", "/api/requests", b'{"text": "hello"}', Content_Type=kind, Origin=own)
        assert answer.status == 415
    assert tab.ask("POST", "/api/requests", b"{", Origin=own).status == 400
    assert tab.ask("POST", "/api/requests", {"text": "x"}, Sec_Fetch_Site="cross-site").status == 403
    assert tab.ask("OPTIONS", "/api/requests").status in (403, 405)
    assert tab.get("/api/runs") == []


@pytest.mark.attack("A57")
def test_a_socket_of_the_web_is_never_opened(tab: Page):
    for origin in ("https://evil.example", f"http://127.0.0.1:{tab.port}"):
        said = raw(
            tab.port,
            f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{tab.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: {origin}\r\n\r\n",
        )
        assert said.startswith((b"401", b"403", b"400"))


@pytest.mark.attack("A58")
@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%2e%2e%2fetc/passwd", "/..%5cetc%5cpasswd", "//etc/passwd",
        "/assets/%00", "/index.html/..", "/.git/config", "/main.js/",
    ],
)  # fmt: skip
def test_nothing_but_the_files_of_the_page_is_served(tab: Page, path: str):
    answer = tab.ask("GET", path)
    assert answer.status == 404 and b"root:" not in answer.body


@pytest.mark.attack("A58")
@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "out/passwd", "a/../../x", "..", ".git/config", "a.py%00", "out"]
)
def test_nothing_outside_of_the_workspace_is_read_or_written(tab: Page, path: str):
    for asked in (f"/api/file?path={path}", f"/api/files?path={path}", f"/api/outline?path={path}"):
        answer = tab.ask("GET", asked)
        assert b"root:" not in answer.body and b"passwd" not in answer.body.replace(path.encode(), b"")
    plain = path.replace("%00", "\0")
    answer = tab.ask("PUT", "/api/file", {"path": plain, "text": "taken", "base": ""})
    assert answer.status in (400, 403, 404, 409, 500), answer.body
    assert answer.status != 500 and "taken" not in Path("/etc/passwd").read_text()


@pytest.mark.attack("A60")
def test_the_token_is_needed_is_not_in_the_query_and_is_nowhere_to_be_read(tab: Page, tmp_path: Path):
    for given in ("", "Bearer", f"Bearer {tab.token}x", f"bearer {tab.token}", tab.token, "Basic eDp5"):
        answer = tab.ask("GET", "/api/state", Authorization=given)
        assert answer.status == 401 and tab.token.encode() not in answer.body
    assert tab.ask("GET", f"/api/state?token={tab.token}", Authorization="").status == 401
    command_line = Path(f"/proc/{tab.process.pid}/cmdline").read_bytes()
    assert tab.token.encode() not in command_line
    kept = [one for one in tmp_path.rglob("*") if one.is_file() and not one.is_symlink()]
    assert kept and not any(tab.token.encode() in one.read_bytes() for one in kept)


@pytest.mark.attack("A60")
def test_the_browser_is_given_a_file_of_the_users_alone_and_the_token_stands_in_no_arguments(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "browser").write_text(
        f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/given.new\nmv {tmp_path}/given.new {tmp_path}/given\n'
    )
    (tmp_path / "browser").chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{tmp_path}/browser %s")
    with page(project({"a.py": "x = 1\n"}).workspace, opens=True) as tab:
        assert until((tmp_path / "given").exists, PATIENCE)
        given = (tmp_path / "given").read_text()
        assert given.startswith("file:///") and tab.token not in given
        file = Path(given.removeprefix("file://"))
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        assert f'content="0; url={tab.address}"' in file.read_text()
        assert tab.ask("GET", "/api/state", Authorization="Bearer x").status == 401 and file.exists()
        tab.get("/api/state")
        assert not file.parent.exists()


def test_every_answer_tells_the_browser_what_the_page_may_do(tab: Page):
    for path in ("/", "/api/state", "/nowhere"):
        headers = tab.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"] and "server" not in headers
    first, second = tab.ask("GET", "/"), tab.ask("GET", "/")
    assert b"__NONCE__" not in first.body and first.body != second.body
    policy = first.headers["content-security-policy"]
    assert "unsafe" not in policy and "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert first.headers["cross-origin-opener-policy"] == first.headers["cross-origin-resource-policy"] == "same-origin"
    assert not any("set-cookie" in tab.ask("GET", path).headers for path in ("/", "/api/state", "/nowhere"))


@pytest.mark.attack("A56")
@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_another_port_of_this_machine_is_another_page(tab: Page, site: str):
    for method, path, body in (("GET", "/api/state", None), ("POST", "/api/requests", {"text": "x"})):
        assert tab.ask(method, path, body, Sec_Fetch_Site=site).status == 403
    assert tab.get("/api/runs") == []


@pytest.mark.attack("A55")
def test_it_listens_on_loopback_alone(tab: Page):
    listening = [f"{tab.port:04X}"]
    rows = [line.split() for line in Path(f"/proc/{tab.process.pid}/net/tcp").read_text().splitlines()[1:]]
    own = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(listening[0])]
    assert own == [f"0100007F:{listening[0]}"]
    six = Path(f"/proc/{tab.process.pid}/net/tcp6")
    assert not six.exists() or f":{listening[0]} " not in six.read_text()


@pytest.mark.attack("A60", "A20")
def test_a_sandboxed_command_finds_no_token_and_no_server(tab: Page):
    reach = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {tab.port}), 5)' 2>&1"
    assert tab.post("/api/requests", {"text": f"!env; cat /proc/*/environ /proc/*/cmdline; {reach} && echo in"})
    assert until(lambda: not tab.get("/api/state")["working"], PATIENCE)
    said = tab.get("/api/told")[-1]["text"]
    assert "PATH=" in said and tab.token not in said
    assert "Error" in said and "\n  in\n" not in said


def test_commands_that_are_not_for_a_page_are_refused(tab: Page):
    for words in (["run", "--", "touch", "x"], ["trust"], ["mcp", "add", "x"], ["do", "x"], ["gc"], ["setup"], []):
        assert tab.ask("POST", "/api/command", {"words": words}).status == 400
    assert tab.ask("POST", "/api/command", {"words": ["diff", "-C", "/etc"]}).status != 500


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 5_000, b"NaN", b"\xff", b'{"path": "a\\ud800", "text": "y", "base": ""}'],
    ids=["deep", "deep objects", "no object", "no text", "half a letter"],
)
def test_a_body_that_is_no_object_of_texts_is_refused(tab: Page, body: bytes):
    assert tab.ask("PUT", "/api/file", body).status == 400
    assert tab.ask("PUT", "/api/file", {"path": "a.py", "text": "x", "base": "x"}).status == 400


def test_a_body_that_is_too_large_is_not_read(tab: Page):
    answer = tab.ask("POST", "/api/requests", b"[]", Content_Length=str(64 << 20))
    assert answer.status == 413


def test_headers_that_are_too_large_are_refused_however_they_come(tab: Page):
    begun = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{tab.port}\r\n"
    assert raw(tab.port, f"{begun}X-Much: {'x' * 15_000}\r\n\r\n").startswith(b"200")
    for more in (f"X-Much: {'x' * 70_000}\r\n", "".join(f"X-{number}: {'x' * 90}\r\n" for number in range(700))):
        assert raw(tab.port, f"{begun}{more}\r\n").startswith((b"431", b"400"))
    assert raw(tab.port, f"GET /{'x' * 70_000} HTTP/1.1\r\n{begun[16:]}\r\n").startswith((b"431", b"400"))


def test_too_many_listeners_are_refused_and_whoever_asks_is_answered_meanwhile(tab: Page):
    with ExitStack() as stack:
        for _ in range(MOST_LISTENERS):
            stack.enter_context(tab.events())
        refused = tab.ask("GET", "/api/events")
        assert (refused.status, refused.json["advice"]) == (503, "close one of them")
        assert tab.get("/api/state")["working"] is False
    assert until(lambda: tab_is_heard(tab), PATIENCE)


def tab_is_heard(tab: Page) -> bool:
    """Whether somebody can listen again."""
    try:
        with tab.events():
            return True
    except AssertionError:
        return False


def test_too_many_connections_are_refused_and_those_that_ask_for_nothing_are_ended(tab: Page):
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", tab.port), timeout=PATIENCE))
            for _ in range(MOST_CONNECTIONS)
        ]
        assert tab.ask("GET", "/").status == 503
        assert silent[0].recv(1) == b""
        assert until(lambda: tab.ask("GET", "/").status == 200, PATIENCE)
