"""An HTTP API with FastAPI from an idea to its acceptance test, in an environment that has it installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scenarios.conftest import spec_story  # noqa: F401
from scenarios.spec_story import SpecStory
from scenarios.test_spec_projects import IGNORED, SPEC, driven

pytestmark = [pytest.mark.npm, pytest.mark.timeout(900)]

ACCEPTANCE = """\
from fastapi.testclient import TestClient

from shop.api import app

client = TestClient(app)


def test_an_item_is_kept_listed_and_read():
    made = client.post("/items", json={"name": "pen", "price": 2.5})
    assert made.status_code == 201 and made.json() == {"id": 1, "name": "pen", "price": 2.5}
    assert client.get("/items").json() == [made.json()]
    assert client.get("/items/1").json()["name"] == "pen"


def test_what_is_wrong_is_refused():
    assert client.get("/items/99").status_code == 404
    assert client.post("/items", json={"name": "pen"}).status_code == 422
    assert client.post("/items", json={"name": "pen", "price": -1}).status_code == 422


def test_the_interface_describes_itself():
    assert set(client.get("/openapi.json").json()["paths"]) == {"/items", "/items/{number}"}
"""
TASKS = """\
# Tasks

## Phase 1: Tests
Write these tests FIRST, ensure they FAIL before implementation
- [ ] T001 [P] [US1] Test of the store in tests/test_store.py
- [ ] T002 [P] [US1] Contract test of the interface in tests/test_api.py, FR-001
## Phase 2: Implementation
- [ ] T003 [US1] The store in shop/store.py
  - Proof: tests/test_store.py
- [ ] T004 [US1] The interface in shop/api.py, FR-001
  - Proof: tests/test_api.py
"""
CODE = {
    "T001": [
        (
            "tests/test_store.py",
            "from shop.store import Store\n\n\ndef test_store():\n    store = Store()\n"
            "    assert store.add('pen', 2.5) == {'id': 1, 'name': 'pen', 'price': 2.5}\n"
            "    assert store.get(1) == store.every()[0] and store.get(2) is None\n",
        )
    ],
    "T002": [
        (
            "tests/test_api.py",
            "from fastapi.testclient import TestClient\n\nfrom shop.api import app\n\n\n"
            "def test_items():\n    client = TestClient(app)\n"
            "    assert client.post('/items', json={'name': 'pen', 'price': 1}).status_code == 201\n"
            "    assert client.get('/items/7').status_code == 404\n",
        )
    ],
    "T003": [
        (
            "shop/store.py",
            "class Store:\n    def __init__(self):\n        self._items = {}\n\n"
            "    def add(self, name, price):\n        number = len(self._items) + 1\n"
            "        self._items[number] = {'id': number, 'name': name, 'price': price}\n"
            "        return self._items[number]\n\n"
            "    def get(self, number):\n        return self._items.get(number)\n\n"
            "    def every(self):\n        return list(self._items.values())\n",
        )
    ],
    "T004": [
        (
            "shop/api.py",
            "from fastapi import FastAPI, HTTPException\nfrom pydantic import BaseModel, Field\n\n"
            "from shop.store import Store\n\napp = FastAPI()\nstore = Store()\n\n\n"
            "class Item(BaseModel):\n    name: str\n    price: float = Field(ge=0)\n\n\n"
            "@app.post('/items', status_code=201)\n"
            "def add(item: Item):\n    return store.add(item.name, item.price)\n\n\n"
            "@app.get('/items')\ndef every():\n    return store.every()\n\n\n"
            "@app.get('/items/{number}')\ndef one(number: int):\n    found = store.get(number)\n"
            "    if found is None:\n        raise HTTPException(404)\n    return found\n",
        )
    ],
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with FastAPI; where it cannot be had there is nothing to test."""
    root = tmp_path_factory.mktemp("fastapi") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    line = [str(root / "bin/pip"), "install", "-q", "--retries", "0", "fastapi", "httpx", "pytest"]
    got = subprocess.run(line, capture_output=True, text=True)
    if got.returncode:
        pytest.skip(f"fastapi cannot be installed here: {got.stderr[-200:]}")
    return root


@pytest.mark.spec("E11")
def test_an_http_api_with_fastapi_comes_from_an_idea(
    spec_story: SpecStory,  # noqa: F811
    environment: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    monkeypatch.setenv("PATH", f"{environment}/bin:/usr/local/bin:/usr/bin:/bin")
    config = '[tool.pytest.ini_options]\npythonpath = ["."]\n'
    spec_story.lay({".gitignore": IGNORED, "pyproject.toml": config, "shop/__init__.py": ""})
    spec = SPEC.format(title="Keep items", what="Items are kept, listed and read")
    driven(spec_story, "keep items", spec, TASKS, CODE)
    workspace = spec_story.pawl.workspace
    (workspace / "test_acceptance.py").write_text(ACCEPTANCE)
    line = [str(environment / "bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(line, cwd=workspace, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
