"""An HTTP API with FastAPI from an idea to its acceptance test, in an environment that has it installed."""

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
