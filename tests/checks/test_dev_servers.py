"""Dev servers are data: which one a project has, and the words that start it on a port."""

import re
import socket
from types import SimpleNamespace

import pytest

from pawl.checks import bench_server
from pawl.checks.bench_server import failure
from pawl.checks.dev_servers import built_in, found_in, load
from pawl.checks.signs import shows_dev_server
from pawl.core.errors import ConfigError, ServerUnavailable

pytestmark = pytest.mark.spec("A13")

NODE = {"node_modules/x": ""}
PROJECTS = {
    "vite script": (
        {"package.json": '{"scripts": {"dev": "vite --mode x"}, "devDependencies": {"vite": "^8"}}'},
        ("npm", "run", "--silent", "dev", "--", "--host", "127.0.0.1", "--port", "4000"),
    ),
    "vite with pnpm": (
        {"package.json": '{"scripts": {"dev": "vite"}, "devDependencies": {"vite": "^8"}}', "pnpm-lock.yaml": ""},
        ("pnpm", "run", "--silent", "dev", "--host", "127.0.0.1", "--port", "4000"),
    ),
    "next": (
        {**NODE, "package.json": '{"dependencies": {"next": "^16", "react": "^19"}}'},
        ("next", "dev", "--hostname", "127.0.0.1", "--port", "4000"),
    ),
    "astro": (
        {"package.json": '{"scripts": {"dev": "astro dev"}, "dependencies": {"astro": "^5"}}'},
        ("npm", "run", "--silent", "dev", "--", "--host", "127.0.0.1", "--port", "4000"),
    ),
    "create-react-app": (
        {"package.json": '{"scripts": {"start": "react-scripts start"}, "dependencies": {"react-scripts": "^5"}}'},
        ("npm", "run", "--silent", "start"),
    ),
    "uvicorn": (
        {"requirements.txt": "fastapi\n", "shop/api.py": "import fastapi\n\napi = fastapi.FastAPI()\n"},
        ("python3", "-m", "uvicorn", "shop.api:api", "--host", "127.0.0.1", "--port", "4000"),
    ),
    "flask": (
        {"requirements.txt": "flask\n", "shop/__init__.py": "from flask import Flask\napp = Flask(__name__)\n"},
        ("python3", "-m", "flask", "--app", "shop:app", "run", "--host", "127.0.0.1", "--port", "4000"),
    ),
    "django": ({"manage.py": ""}, ("python3", "manage.py", "runserver", "127.0.0.1:4000", "--noreload")),
}
SAYS = {
    "vite": "  ➜  Local:   http://127.0.0.1:5174/",
    "vite over IPv6": "  ➜  Local:   http://[::1]:5174/",
    "next": "   - Local:        http://127.0.0.1:3001",
    "astro": "┃ Local    http://127.0.0.1:4322/",
    "create-react-app": "  http://127.0.0.1:3001",
    "create-react-app with an address": "  Local:            http://localhost:3001",
    "uvicorn": "INFO:     Uvicorn running on http://127.0.0.1:8001 (Press CTRL+C to quit)",
    "flask": " * Running on http://127.0.0.1:5001",
    "django": "Starting development server at http://127.0.0.1:8001/",
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_projects_server_is_known_with_the_words_that_start_it(subject, name):
    files, words = PROJECTS[name]
    found = found_in(subject(files, tools=False))
    assert tuple(word.replace("{port}", "4000") for word in found.words) == words
    assert name.startswith(found.server.name)
    assert "127.0.0.1" in " ".join((*words, *found.server.environment.values()))


@pytest.mark.parametrize("name", SAYS)
def test_what_a_server_prints_says_where_it_listens(name):
    (server,) = [one for one in built_in() if one.name == name.split()[0]]
    ports = [match["port"] for pattern in server.ready if (match := re.search(pattern, SAYS[name]))]
    assert ports and int(ports[0]) == server.port + 1


def test_every_server_has_its_words_tried():
    assert {one.name for one in built_in()} == {name.split()[0] for name in SAYS}


@pytest.mark.spec("A5")
@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"ready": 5000, "status": 200}, None),
        ({"failed": "port 5000 is taken", "busy": True}, "port_in_use"),
        ({"failed": "it did not print its address within 60 s", "late": True}, "timed_out"),
        ({"failed": "it ended with code 127", "missing": True}, "server_unavailable"),
        ({"failed": "it ended with code 1", "output": "No module named flask"}, "server_unavailable"),
        ({"failed": "it ended with code 1", "output": "SyntaxError"}, "build_failed"),
    ],
)
def test_each_way_in_which_a_server_fails_is_an_error_of_its_own_with_what_to_do_next(told, code):
    error = failure("flask", told)
    assert (error and error.code) == code
    assert error is None or error.advice


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_that_has_a_server_shows_it_to_a_first_look(subject, name):
    assert shows_dev_server(subject(PROJECTS[name][0], tools=False).files)


def test_projects_without_a_server_have_none(subject):
    plain = subject({"app.py": "x = 1\n"})
    assert found_in(plain) is None and not shows_dev_server(plain.files)
    assert found_in(subject({"requirements.txt": "flask\n", "app.py": "x = 1\n"})) is None


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"name": "x"}, "when"),
        ({"name": "x", "when": {}, "words": ["y"], "port": 1, "ready": ["z"]}, "port"),
        ({"name": "x", "when": {}, "words": ["y"], "port": 99999, "ready": ["(?P<port>z)"]}, "99999"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused(entry, word):
    with pytest.raises(ConfigError, match=word):
        load({"server": [entry]}, "[verify]")


@pytest.mark.hostile
def test_a_page_that_never_ends_is_cut_off(monkeypatch):
    """The rest of a server is played by both ends of a pair of sockets."""
    monkeypatch.setattr(bench_server, "PAGE_SECONDS", 0.05)
    near, far = socket.socketpair()
    running = SimpleNamespace(name="toy", log="", told={"ready": 80}, forwarder=SimpleNamespace(connect=lambda _: near))
    with far:
        far.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        assert bench_server._page(running, "/") == (200, "x")
    near, far = socket.socketpair()
    with far, pytest.raises(ServerUnavailable):
        far.sendall(b"HTTP/1.0 ")
        bench_server._page(running, "/")
