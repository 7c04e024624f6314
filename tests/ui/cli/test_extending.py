"""Every example of docs/extending.md, taken from the page, laid beside a real installation and run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ui.cli.console import Pawl, Said

from pawl.agent.policy import policy_of
from pawl.core.run import RoleName
from pawl.settings.config import load
from pawl.workspace.project import Project

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^```\w+\n(?:# |<!-- )(?P<file>[\w./-]+)(?: -->)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TOML_FILES = {"intents.toml", "roles/artisan.toml", "frameworks/shell.toml"}

pytestmark = pytest.mark.spec("B14")


def examples(file: str) -> list[str]:
    found = [one["text"] for one in BLOCK.finditer(PAGE) if one["file"] == file]
    assert found, f"the page has no example of {file}"
    return found


class Installed:
    """Pawl with a settings folder, and with a folder of packages beside it."""

    def __init__(self, pawl: Pawl, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pawl = pawl
        self.settings = folder / "settings"
        self.site = folder / "site"
        self.script = folder / "script.jsonl"
        self.settings.mkdir()
        self.site.mkdir()
        (self.settings / "config.toml").write_text("")
        monkeypatch.setenv("PAWL_CONFIG", str(self.settings / "config.toml"))
        monkeypatch.setenv("PYTHONPATH", str(self.site))

    def file(self, name: str) -> None:
        """Lays the example of that name into the settings folder."""
        path = self.settings / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(examples(name)[0])

    def config(self, text: str) -> None:
        (self.settings / "config.toml").write_text(text)

    def config_of_page(self, word: str, more: str = "") -> None:
        self.config(next(one for one in examples("config.toml") if word in one) + more)

    def package(self, text: str | None = None) -> None:
        """Installs the package of the page, or one with other code: its module, its name, its entry points."""
        project = tomllib.loads(examples("pyproject.toml")[0])["project"]
        (self.site / "my_pawl.py").write_text("\n".join(examples("my_pawl.py")) if text is None else text)
        about = self.site / f"my_pawl-{project['version']}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        groups = project["entry-points"].items()
        lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for group, of in groups]
        (about / "entry_points.txt").write_text("\n".join(lines))

    def says(self, *turns: dict[str, object]) -> str:
        self.script.write_text("".join(json.dumps({"answer": turn}) + "\n" for turn in turns))
        return f"scripted:{self.script}"

    def streamed(self, request: str, model: str = "", code: int | None = 0) -> list[dict]:
        words = ["--model", model] if model else []
        said = self.pawl("-p", request, "--approve", "never", "--output-format", "stream-json", *words)
        assert code in (None, said.code), said.out
        return [json.loads(line) for line in said.lines]

    def tool_result(self, call: dict[str, object], request: str = "what is to do?") -> dict:
        """What the model is told of its call."""
        model = self.says({"text": "", "calls": [call]}, {"text": "So it is (src/greeter.py:1)."})
        lines = self.streamed(request, model, code=None)
        contents = [one for line in lines if line["type"] == "user" for one in line["message"]["content"]]
        # Files that the request names are read before.
        return [one for one in contents if one["type"] == "tool_result"][-1]


@pytest.fixture
def installed(pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    folder = tmp_path / "installed"
    folder.mkdir()
    return Installed(pawl, folder, monkeypatch)


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def result(lines: list[dict]) -> dict:
    return next(line for line in lines if line["type"] == "result")


def refused(said: Said, *words: str) -> None:
    """A clear mistake of the settings."""
    assert said.code == 52, said
    assert "Traceback" not in said.out + said.err
    assert all(word in said.out + said.err for word in words), said


def test_every_example_of_the_page_is_read_by_a_test():
    files = {one["file"] for one in BLOCK.finditer(PAGE)}
    texts = {"prompts/stages/answer.md", "skills/notes/SKILL.md", "agents/reviewer-of-sql.md"}
    assert files == {*TOML_FILES, *texts, "config.toml", "pyproject.toml", "my_pawl.py"}
    # Transcripts are played by another test.
    assert PAGE.count("\n```") == 2 * (len(list(BLOCK.finditer(PAGE))) + PAGE.count("\n```console\n"))


def test_a_sub_agent_of_the_users_own_is_sound_and_listed(installed: Installed):
    installed.file("agents/reviewer-of-sql.md")
    assert installed.pawl("agents", "check").code == 0
    assert "reviewer-of-sql" in installed.pawl("agents").out


def test_a_phrase_of_the_users_own_runs_its_command_without_a_model(installed: Installed):
    installed.file("intents.toml")
    (installed.pawl.workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    ended = installed.pawl("do", "Please count my notes.")
    assert ended.code == 0 and "3 notes.txt" in ended.out, ended


def test_a_phrase_of_a_repository_counts_only_where_it_is_trusted(installed: Installed):
    theirs = installed.pawl.workspace / ".pawl" / "intents.toml"
    theirs.parent.mkdir()
    theirs.write_text(examples("intents.toml")[0])
    (installed.pawl.workspace / "notes.txt").write_text("one\n")
    assert "notes.txt" not in installed.pawl("do", "count my notes").out
    assert installed.pawl("trust").code == 0
    assert "1 notes.txt" in installed.pawl("do", "count my notes").out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[intent]]\nname = 'run'\npatterns = ['a']\nexamples = ['a']\n", "command"),
        ("[[intent]]\nname = 'fly'\npatterns = ['a']\nexamples = ['a']\n", "'fly'"),
        ("[[intent]]\nname = 'undo'\npatterns = ['(']\nexamples = ['a']\n", "pattern"),
        ("[[intent]]\nname = 'undo'\npatterns = ['a']\nexamples = ['b']\n", "example 'b'"),
        ("[[intent]]\nname = 'undo'\npatterns = ['.*']\nexamples = ['b']\nothers = ['c']\n", "'c'"),
        ("[[intent]\n", "TOML"),
    ],
)
def test_phrases_that_cannot_be_meant_are_refused_with_their_file(installed: Installed, text: str, why: str):
    (installed.settings / "intents.toml").write_text(text)
    refused(installed.pawl("do", "anything"), "intents.toml", why)


def test_a_prompt_of_the_users_own_is_what_is_sent(installed: Installed):
    installed.file("prompts/stages/answer.md")
    assert "answer in one sentence" in installed.pawl("prompts", "show", "stages/answer").out
    assert installed.pawl("prompts", "check").code == 0


def test_a_skill_of_the_users_own_is_read_by_the_model(installed: Installed):
    installed.file("skills/notes/SKILL.md")
    assert installed.pawl("skills", "check").code == 0
    assert "Newest first" in str(
        installed.tool_result({"name": "read_skill", "arguments": {"name": "notes"}})["content"]
    )


def test_a_role_of_the_users_own_has_only_its_tools(installed: Installed):
    installed.file("roles/artisan.toml")
    role = policy_of(load(), str(installed.pawl.workspace)).role(RoleName.ARTISAN)
    assert role.tools == {"file_read", "file_search", "strict_patch"}
    told = installed.tool_result(call("run_command", command="true"), "change src/greeter.py so that it is better")
    assert told["is_error"] and "not a tool of this stage" in told["content"]


def test_a_test_framework_of_the_users_own_is_run_and_counted(installed: Installed):
    installed.file("frameworks/shell.toml")
    case = "<testcase classname='c' name='one'/>"
    (installed.pawl.workspace / "check.sh").write_text(
        f"echo \"<testsuites><testsuite name='s' tests='1'>{case}</testsuite></testsuites>\"\n"
    )
    (installed.pawl.workspace / "a.check").write_text("")
    ended = installed.pawl("do", "run the tests")
    assert ended.code == 0 and "1 passed" in ended.out + ended.err, ended


@pytest.mark.whole
def test_a_check_of_the_users_own_is_part_of_the_ladder(installed: Installed):
    installed.config_of_page("verify.step")
    (installed.pawl.workspace / "notes.txt").write_text("a\tb\n")
    ended = installed.pawl("verify")
    assert ended.code != 0 and "no tabs" in ended.out, ended


def test_what_a_hook_says_is_told_to_the_model(installed: Installed):
    installed.config_of_page("hooks")
    installed.streamed(
        "change src/greeter.py so that it is better", installed.says({"text": "Done."}, {"text": "Done."}), code=1
    )
    with Project.open(load(), installed.pawl.workspace) as shop:
        (ended,) = shop.store.runs.evaluations(shop.workspace)
        told = shop.store.runs.value(str(ended["run"]), "told")
    assert any("prefers short names" in text for text in told)


@pytest.mark.whole
def test_a_tool_of_a_package_is_offered_called_and_fails_by_name(installed: Installed):
    installed.package()
    installed.config_of_page("extensions")
    (installed.pawl.workspace / "src" / "late.py").write_text("x = 1  # TODO: more\n")
    request = "explain src/late.py"
    assert installed.tool_result(call("todos"), request)["content"] == "src/late.py:1: x = 1  # TODO: more"
    failed = installed.tool_result(call("todos", ending=".zig"), request)
    assert failed["is_error"] and failed["content"].startswith("nothing_to_search: no file ends with '.zig'")
    unknown = installed.tool_result(call("todos", end=".py"), request)
    assert unknown["is_error"] and "did you mean 'ending'" in unknown["content"]
    installed.config('[extensions]\ntools = ["todos"]\n[permissions]\ndeny = ["todos"]\n')
    denied = installed.tool_result(call("todos"), "change src/late.py so that it is better")
    assert denied["is_error"] and "permission_denied" in denied["content"]


GREEDY = """
from dataclasses import dataclass
from pawl.core.execution import Execution
from pawl import Effect, OwnTool

@dataclass(frozen=True)
class What:
    what: str
    path: str = ""

def run(given, ports):
    if given.what == "read":
        return ports.files.read(given.path).decode()
    if given.what == "write":
        ports.editor.write(given.path, "new")
        return "written"
    if given.what == "break":
        raise ZeroDivisionError("oh")
    done = ports.runner.run(Execution(argv=("sh", "-c", given.path)))
    return f"{done.code} {done.stdout.text}"

todos = OwnTool(purpose="p", text="Does things.", input=What, effect=Effect.EFFECT, run=run)
"""


@pytest.mark.whole
def test_a_tool_of_a_package_has_no_more_of_the_bench_than_its_effect_and_the_rules_give(installed: Installed):
    workspace = installed.pawl.workspace
    (workspace / ".env").write_text("TOKEN=hidden\n")
    (workspace / "held.txt").write_text("held\n")
    installed.config('[extensions]\ntools = ["todos"]\n[permissions]\ndeny = ["Read(held.txt)", "Bash(touch *)"]\n')
    request = "change src/greeter.py so that it is better"

    def told(effect: str, what: str, path: str) -> str:
        installed.package(GREEDY.replace("EFFECT", effect))
        return installed.tool_result(call("todos", what=what, path=path), request)["content"]

    assert told("READS", "read", "src/greeter.py").startswith("def greet")
    assert told("READS", "read", ".env").startswith("secret_refused")
    assert told("READS", "read", "held.txt").startswith("permission_denied")
    assert "hidden" not in told("READS", "read", "../project/.env")
    assert told("READS", "write", "src/new.py").startswith("policy_violation")
    assert told("WRITES", "run", "true").startswith("policy_violation")
    assert told("RUNS", "run", "touch x").startswith("permission_denied")
    assert told("RUNS", "run", "echo hello") == "0 hello\n"
    told("RUNS", "run", f"echo x > {workspace.parent}/outside")
    told("RUNS", "run", f"python3 -c \"open('{workspace.parent}/outside', 'w')\"")
    assert not (workspace.parent / "outside").exists()
    broken = told("READS", "break", "")
    assert broken.startswith("tool_error") and "'my-pawl' failed: ZeroDivisionError: oh" in broken


@pytest.mark.whole
def test_what_a_tool_of_a_package_writes_is_verified_promoted_and_undone(installed: Installed):
    installed.package(GREEDY.replace("EFFECT", "WRITES"))
    installed.config('[extensions]\ntools = ["todos"]\n')
    model = installed.says({"text": "", "calls": [call("todos", what="write", path="notes.txt")]}, {"text": "Written."})
    installed.streamed("change notes.txt so that it says new", model)
    assert (installed.pawl.workspace / "notes.txt").read_text().strip() == "new"
    assert installed.pawl("undo").code == 0
    assert not (installed.pawl.workspace / "notes.txt").exists()


def test_a_tool_that_writes_is_never_there_in_chat(installed: Installed):
    installed.package(GREEDY.replace("EFFECT", "WRITES"))
    installed.config('[extensions]\ntools = ["todos"]\n')
    told = installed.tool_result(call("todos", what="write", path="notes.txt"), "explain src/greeter.py")
    assert told["is_error"] and "not a tool of this stage" in told["content"]


def evaluations(installed: Installed) -> list[tuple[object, object, object]]:
    with Project.open(load(), installed.pawl.workspace) as shop:
        return [(one["score"], one["reason"], one["judge"]) for one in shop.store.runs.evaluations(shop.workspace)]


def test_an_evaluator_of_a_package_scores_every_run(installed: Installed):
    installed.package()
    installed.config_of_page("extensions")
    assert installed.pawl("do", "run ls.sh").code != 0
    assert installed.pawl("do", "what can you do?").code == 0
    installed.streamed("explain src/greeter.py", installed.says({"text": "It greets (src/greeter.py:1)."}))
    assert evaluations(installed)[1:] == [
        (5, "done at no cost", "extension"),
        (4, "done with 1 requests", "extension"),
    ]


@pytest.mark.parametrize("code", ["def frugal(report): return 1 / 0", "import no"])
def test_an_evaluator_that_fails_is_told_and_the_rules_score(installed: Installed, code: str):
    installed.package(code)
    installed.config('[extensions]\nevaluator = "frugal"\n')
    ended = installed.pawl("do", "what can you do?")
    assert ended.code == 0 and "my-pawl" in ended.err and "Traceback" not in ended.err, ended
    assert evaluations(installed) == [(5, "done", "rules")]


NOBODY = '\n[models]\ndefault = "gone/m"\n[providers.gone]\nwire = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'


def retries(lines: list[dict]) -> list[float]:
    return [line["retry_delay"] for line in lines if line.get("subtype") == "api_retry"]


def test_a_strategy_of_a_package_chooses_the_waits_within_the_limits(installed: Installed):
    installed.package()
    installed.config('model_retries = 2\n[extensions]\nretries = "steady"\n' + NOBODY)
    assert retries(installed.streamed("explain src/greeter.py", code=75)) == [0.01, 0.02]
    installed.package("def steady(failed): return -1")
    said = installed.pawl("ask", "what does src/greeter.py do?")
    refused(said, "'steady'", "my-pawl", "-1")


def test_the_table_of_retries_is_enough_for_other_limits(installed: Installed):
    installed.config("[retries]\nbase = 0.001\nseconds = 5\n" + NOBODY)
    waits = retries(installed.streamed("explain src/greeter.py", code=75))
    assert len(waits) == 3 and max(waits) <= 0.004
    installed.config("[retries]\nbas = 1\n" + NOBODY)
    refused(installed.pawl("ask", "why?"), "retries", "bas")


@pytest.mark.whole
def test_questions_of_one_form_share_an_answer_that_still_holds(installed: Installed):
    installed.package()
    installed.config_of_page("extensions")
    turns = [{"text": "", "calls": [call("file_read", path="src/greeter.py")]}, {"text": "In src/greeter.py:1."}]
    model = installed.says(*turns)

    def ask(question: str) -> dict:
        return installed.pawl.json("ask", question, "--model", model)

    assert not ask("Where is the greeting?")["cached"]
    assert ask("please where is a greeting")["cached"]
    assert not ask("where is the greeting today?")["cached"]
    assert not ask("where is the greeting today?")["cached"]
    (installed.pawl.workspace / "src" / "greeter.py").write_text("other = 1\n")
    assert not ask("where is the greeting?")["cached"]


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        ('tools = ["todos"]', "raise RuntimeError('oh no')", ("my-pawl", "RuntimeError: oh no")),
        ('tools = ["todos"]', "import sys; sys.exit(3)", ("my-pawl", "SystemExit")),
        ('tools = ["todos"]', "todos = 1", ("my-pawl", "OwnTool")),
        ('tools = ["todos"]', "", ("my-pawl", "todos")),
        ('tools = ["nobody"]', "todos = 1", ("'nobody'", "there are: todos")),
        ('tools = ["file_read"]', "", ("'file_read'", "Pawl's own")),
        ('tools = "todos"', "", ("must be a list",)),
        ('tool = ["todos"]', "", ("tool",)),
    ],
)
def test_an_extension_that_cannot_be_used_is_named(installed: Installed, table: str, code: str, words: tuple[str, ...]):
    installed.package(code)
    installed.config(f"[extensions]\n{table}\n")
    refused(installed.pawl("ask", "why?", "--model", installed.says({"text": "So."})), *words)


def test_what_is_broken_stops_no_undo(installed: Installed):
    installed.pawl.applied("echo more >> src/greeter.py")
    installed.package("raise RuntimeError('oh no')")
    installed.config_of_page("extensions")
    (installed.settings / "frameworks").mkdir()
    (installed.settings / "frameworks" / "broken.toml").write_text("name = 1")
    (installed.settings / "intents.toml").write_text("[[broken]")
    assert installed.pawl("undo").code == 0
    assert "more" not in (installed.pawl.workspace / "src" / "greeter.py").read_text()


@pytest.mark.attack("A15")
def test_packages_of_the_workspace_do_not_count(installed: Installed, monkeypatch: pytest.MonkeyPatch):
    installed.site = installed.pawl.workspace
    installed.package()
    installed.config_of_page("extensions")
    monkeypatch.delenv("PYTHONPATH")
    refused(installed.pawl("ask", "why?", "--model", installed.says({"text": "So."})), "no package beside Pawl brings")


def test_nothing_is_looked_for_where_nothing_is_named(installed: Installed):
    code = (
        "import sys; from pawl import __main__; sys.argv = ['pawl', 'do', 'what can you do?']; __main__.main();"
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=installed.pawl.workspace, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
