"""Whole projects from an idea to passing acceptance tests, which were written before the script: every step of
`pawl spec`, with a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from scenarios.spec_story import SpecStory, write

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

IGNORED = "__pycache__/\n.pytest_cache/\nnode_modules/\n"
SPEC = """\
# Feature Specification: {title}

### User Story 1 - {title} (Priority: P1)

- **FR-001**: {what}
"""
QUESTIONS = "# Questions\n\n1. Is empty input an error? (no, yes)\n   Answer:\n"


@pytest.fixture
def story(spec_story: SpecStory) -> SpecStory:
    return spec_story


def driven(story: SpecStory, idea: str, spec: str, tasks: str, code: Mapping[str, list[tuple[str, str]]]) -> None:
    """Idea, question and answer, plan, tasks, waves, and nothing left to converge."""
    folder = "specs/001-" + "-".join(idea.split())
    story.model_says(
        *write((f"{folder}/spec.md", spec), user="the specification of this idea"),
        *write((f"{folder}/questions.md", QUESTIONS), user="whose answers change what is built"),
        *write((f"{folder}/spec.md", f"{spec}\n## Clarifications\n- empty input: no\n"), user="by these answers"),
        *write(
            (f"{folder}/plan.md", "# Plan\n"), (f"{folder}/research.md", "Decision: plain\n"), user="technical plan"
        ),
        *write((f"{folder}/tasks.md", tasks), user="the tasks of"),
        *(turn for task, files in code.items() for turn in write(*files, user=f"{task}: ")),
        {"match": {"user": "what the code lacks"}, "answer": {"text": "Nothing is missing."}},
    )
    assert story.spec("specify", idea).code == 0
    asked = story.spec("clarify")
    assert asked.code == 4 and "1 question open" in asked.err, asked
    questions = story.pawl.workspace / folder / "questions.md"
    questions.write_text(questions.read_text().replace("Answer:", "Answer: no"))
    assert story.spec("clarify").code == 0
    assert "## Clarifications" in (story.pawl.workspace / folder / "spec.md").read_text()
    assert story.spec("plan").code == 0 and story.spec("tasks").code == 0
    analyzed = story.spec("analyze")
    assert analyzed.code == 0, analyzed
    story.planned()
    said = story.spec("execute")
    assert said.code == 0, said.out[:900]
    status = story.pawl.json("spec", "status")
    assert {one["standing"] for one in status["tasks"]} == {"proved"} and status["next_step"] == "pawl spec converge"
    assert story.git("status", "--porcelain") == ""


@pytest.mark.spec("E11", "A1", "A2")
def test_a_command_line_program_in_python_comes_from_an_idea(story: SpecStory):
    story.lay({".gitignore": IGNORED, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'})
    tasks = (
        "# Tasks\n\n## Phase 1: User Story 1\n"
        "### Tests\nWrite these tests FIRST, ensure they FAIL before implementation\n"
        "- [ ] T001 [P] [US1] Test of counting in tests/test_count.py, FR-001\n"
        "- [ ] T002 [P] [US1] Test of the program in tests/test_program.py\n"
        "### Implementation\n"
        "- [ ] T003 [US1] Count in count.py, FR-001\n  - Proof: tests/test_count.py\n"
        "- [ ] T004 [US1] The program in program.py\n  - Proof: tests/test_program.py\n"
    )
    code = {
        "T001": [
            ("tests/test_count.py", "from count import count\n\n\ndef test_count():\n    assert count('a b') == 2\n")
        ],
        "T002": [
            (
                "tests/test_program.py",
                "from program import main\n\n\ndef test_main(capsys):\n    assert main(['a b c']) == 0\n"
                "    assert capsys.readouterr().out == '3\\n'\n",
            )
        ],
        "T003": [("count.py", "def count(text):\n    return len(text.split())\n")],
        "T004": [
            (
                "program.py",
                "import sys\n\nfrom count import count\n\n\n"
                "def main(words):\n    print(count(' '.join(words)))\n    return 0\n\n\n"
                "if __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))\n",
            )
        ],
    }
    driven(
        story, "count words", SPEC.format(title="Count words", what="It prints how many words there are"), tasks, code
    )
    # The acceptance test, as the user runs it.
    ran = subprocess.run(
        [sys.executable, "program.py", "one two", "three"], cwd=story.pawl.workspace, capture_output=True
    )
    assert (ran.returncode, ran.stdout) == (0, b"3\n")


PAGE_TEST = """\
import test from "node:test";
import assert from "node:assert";
import {{ {name} }} from "../src/{name}.mjs";

test("{name}", () => {{
  assert.strictEqual({name}({given}), {wanted});
}});
"""


@pytest.mark.spec("E11")
def test_a_page_in_javascript_comes_from_an_idea(story: SpecStory):
    story.lay(
        {
            ".gitignore": IGNORED,
            "package.json": json.dumps({"name": "p", "type": "module", "scripts": {"test": "node --test"}}),
        }
    )
    tasks = (
        "# Tasks\n\n## Phase 1: User Story 1\n"
        "- [ ] T001 [P] [US1] An escaped text in src/escape.mjs and test/escape.test.mjs, FR-001\n"
        "- [ ] T002 [P] [US1] A list of items in src/list.mjs and test/list.test.mjs\n"
        "## Phase 2: Page\n"
        "- [ ] T003 [US1] The page in src/page.mjs and test/page.test.mjs\n"
    )
    escape = "export const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');\n"
    lists = "export const list = (items) => `<ul>${items.map((one) => `<li>${one}</li>`).join('')}</ul>`;\n"
    page = (
        "import { escape } from './escape.mjs';\nimport { list } from './list.mjs';\n\n"
        "export const page = (title, items) => `<h1>${escape(title)}</h1>${list(items.map(escape))}`;\n"
    )
    code = {
        "T001": [
            ("src/escape.mjs", escape),
            ("test/escape.test.mjs", PAGE_TEST.format(name="escape", given="'<a>'", wanted="'&lt;a>'")),
        ],
        "T002": [
            ("src/list.mjs", lists),
            ("test/list.test.mjs", PAGE_TEST.format(name="list", given="['a']", wanted="'<ul><li>a</li></ul>'")),
        ],
        "T003": [
            ("src/page.mjs", page),
            ("test/page.test.mjs", PAGE_TEST.format(name="page", given="'<', []", wanted="'<h1>&lt;</h1><ul></ul>'")),
        ],
    }
    driven(story, "show items", SPEC.format(title="Show items", what="It shows a list of items"), tasks, code)
    accept = "import('./src/page.mjs').then((m) => console.log(m.page('A & B', ['<x>'])))"
    ran = subprocess.run(["node", "-e", accept], cwd=story.pawl.workspace, capture_output=True, text=True)
    assert ran.stdout == "<h1>A &amp; B</h1><ul><li>&lt;x></li></ul>\n", ran.stderr


API_TEST = """\
from starlette.testclient import TestClient

from api import app


def test_notes():
    client = TestClient(app)
    assert client.post("/notes", json={"text": "a"}).status_code == 201
    assert client.get("/notes").json() == ["a"]
    assert client.post("/notes", json={}).status_code == 400
"""
API = """\
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from notes import Notes

kept = Notes()


async def add(request: Request) -> JSONResponse:
    body = await request.json()
    if "text" not in body:
        return JSONResponse({"error": "text is missing"}, 400)
    kept.add(body["text"])
    return JSONResponse(body, 201)


async def every(request: Request) -> JSONResponse:
    return JSONResponse(kept.every())


app = Starlette(routes=[Route("/notes", add, methods=["POST"]), Route("/notes", every)])
"""
NOTES = """\
class Notes:
    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def every(self) -> list[str]:
        return list(self._texts)
"""
NOTES_TEST = """\
from notes import Notes


def test_notes_are_kept_in_order():
    notes = Notes()
    notes.add("a")
    notes.add("b")
    assert notes.every() == ["a", "b"]
"""


@pytest.mark.spec("E11")
def test_an_http_api_comes_from_an_idea(story: SpecStory, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("starlette.testclient")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin")
    story.lay({".gitignore": IGNORED, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'})
    tasks = (
        "# Tasks\n\n## Phase 1: Tests\nWrite these tests FIRST, ensure they FAIL before implementation\n"
        "- [ ] T001 [P] [US1] Contract test in tests/test_api.py, FR-001\n"
        "- [ ] T002 [P] [US1] Test of the store in tests/test_notes.py\n"
        "## Phase 2: Implementation\n"
        "- [ ] T003 [US1] The store in notes.py\n  - Proof: tests/test_notes.py\n"
        "- [ ] T004 [US1] The interface in api.py, FR-001\n  - Proof: tests/test_api.py\n"
    )
    code = {
        "T001": [("tests/test_api.py", API_TEST)],
        "T002": [("tests/test_notes.py", NOTES_TEST)],
        "T003": [("notes.py", NOTES)],
        "T004": [("api.py", API)],
    }
    driven(story, "keep notes", SPEC.format(title="Keep notes", what="Notes are added and listed"), tasks, code)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=story.pawl.workspace, capture_output=True
    )
    assert ran.returncode == 0, ran.stdout


REACT_TASKS = """\
# Tasks

## Phase 1: Tests
Write these tests FIRST, ensure they FAIL before implementation
- [ ] T001 [P] [US1] Test of the counting of what is open in src/todo.test.ts, FR-001
- [ ] T002 [P] [US1] Test of the list that is shown in src/TodoList.test.tsx
## Phase 2: Implementation
- [ ] T003 [P] [US1] What is open in src/todo.ts, FR-001
  - Proof: src/todo.test.ts
- [ ] T004 [P] [US1] The list in src/TodoList.tsx
  - Proof: src/TodoList.test.tsx
## Phase 3: Page
- [ ] T005 [US1] The page in src/App.tsx
  - Proof: src/App.test.tsx
  - Test first: yes
"""
REACT_ACCEPTANCE = """\
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { App } from "./src/App";

test("the page shows its items, escapes them, and counts what is open", () => {
  const items = [{ text: "<b>milk</b>", done: false }, { text: "bread", done: true }];
  const shown = renderToStaticMarkup(<App items={items} />);
  expect(shown).toContain("1 open");
  expect(shown).toContain("&lt;b&gt;milk&lt;/b&gt;");
  expect(shown).toMatch(/<li[^>]*class="done"[^>]*>bread/);
});
"""
REACT_CODE = {
    "T001": [
        (
            "src/todo.test.ts",
            'import { expect, test } from "vitest";\nimport { left } from "./todo";\n\n'
            'test("left", () => {\n'
            '  expect(left([{ text: "a", done: false }, { text: "b", done: true }])).toBe(1);\n});\n',
        )
    ],
    "T002": [
        (
            "src/TodoList.test.tsx",
            'import { renderToStaticMarkup } from "react-dom/server";\nimport { expect, test } from "vitest";\n'
            'import { TodoList } from "./TodoList";\n\n'
            'test("list", () => {\n'
            '  const shown = renderToStaticMarkup(<TodoList items={[{ text: "a", done: true }]} />);\n'
            "  expect(shown).toBe('<ul><li class=\"done\">a</li></ul>');\n});\n",
        )
    ],
    "T003": [
        (
            "src/todo.ts",
            "export interface Item {\n  text: string;\n  done: boolean;\n}\n\n"
            "export const left = (items: Item[]) => items.filter((one) => !one.done).length;\n",
        )
    ],
    "T004": [
        (
            "src/TodoList.tsx",
            "export function TodoList({ items }: { items: { text: string; done: boolean }[] }) {\n"
            "  return (\n    <ul>\n      {items.map((one) => (\n"
            '        <li key={one.text} className={one.done ? "done" : undefined}>\n'
            "          {one.text}\n        </li>\n"
            "      ))}\n    </ul>\n  );\n}\n",
        )
    ],
    "T005": [
        (
            "src/App.test.tsx",
            'import { renderToStaticMarkup } from "react-dom/server";\nimport { expect, test } from "vitest";\n'
            'import { App } from "./App";\n\n'
            'test("page", () => {\n  expect(renderToStaticMarkup(<App items={[]} />)).toContain("0 open");\n});\n',
        ),
        (
            "src/App.tsx",
            'import { type Item, left } from "./todo";\nimport { TodoList } from "./TodoList";\n\n'
            "export function App({ items }: { items: Item[] }) {\n"
            "  return (\n    <main>\n      <h1>{`${left(items)} open`}</h1>\n"
            "      <TodoList items={items} />\n    </main>\n  );\n}\n",
        ),
    ],
}
MODULES = Path(__file__).parents[2] / "web/node_modules"


@pytest.mark.spec("E11")
@pytest.mark.skipif(not (MODULES / "vitest").is_dir(), reason="the packages of web/ are not installed: make web")
def test_a_react_page_comes_from_an_idea(story: SpecStory):
    workspace = story.pawl.workspace
    subprocess.run(["cp", "-a", "--reflink=auto", str(MODULES), str(workspace / "node_modules")], check=True)
    story.lay(
        {
            ".gitignore": IGNORED,
            "package.json": json.dumps({"name": "p", "type": "module", "scripts": {"test": "vitest run"}}),
            "vite.config.ts": 'import react from "@vitejs/plugin-react";\n\nexport default { plugins: [react()] };\n',
            "tsconfig.json": json.dumps(
                {
                    "compilerOptions": {
                        "module": "esnext",
                        "moduleResolution": "bundler",
                        "jsx": "react-jsx",
                        "strict": True,
                        "noEmit": True,
                        "skipLibCheck": True,
                    },
                    "include": ["src"],
                }
            ),
        }
    )
    spec = SPEC.format(title="Show tasks", what="What is open is counted")
    driven(story, "show tasks", spec, REACT_TASKS, REACT_CODE)
    (workspace / "accept.test.tsx").write_text(REACT_ACCEPTANCE)
    line = ["node_modules/.bin/vitest", "run", "accept.test.tsx"]
    ran = subprocess.run(line, cwd=workspace, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    types = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=workspace, capture_output=True, text=True)
    assert types.returncode == 0, types.stdout
