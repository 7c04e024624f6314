"""The pages say what is so: every command, option, setting and key is named, and the transcripts are played."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.transcript import blocks, played, stage, surroundings
from ui.cli.transcript import keys as foreign_keys

from pawl.agent.corrections import corrections
from pawl.agent.policy import as_markdown
from pawl.agent.queue.job_queue import QueueSettings
from pawl.core import errors
from pawl.core.dialogue import Sampling
from pawl.core.run import Budget, RequestRecord
from pawl.models.ledger import Rates
from pawl.models.providers import Capabilities, LocalSettings, Provider, Quirks, builtin, local_settings
from pawl.models.router import RetryLimits, Routes, model_config
from pawl.models.scripted import FAULTS
from pawl.settings.config import Settings, SettingsTables, load
from pawl.settings.extensions import ExtensionSettings
from pawl.settings.hook_settings import HookEvent
from pawl.settings.permissions import PermissionSettings, permissions_of, presets
from pawl.settings.trust import is_trusted
from pawl.ui.cli.overview import COMMANDS as OPTIONS
from pawl.ui.cli.parser import parser_for
from pawl.workspace.hook_runner import hooks_for
from pawl.workspace.mcp_settings import McpServer, McpSettings

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
DOCS = ROOT / "docs"
# In the order in which their transcripts are played.
PARTS = [
    DOCS / "commands" / f"{name}.md"
    for name in ("work", "checks", "configuration", "history", "machines", "spec", "queue")
]
COMMANDS = "\n".join(page.read_text() for page in (DOCS / "commands.md", *PARTS))
SETTINGS = (DOCS / "settings.md").read_text()
MODELS = (DOCS / "models.md").read_text()
EXTENDING = (DOCS / "extending.md").read_text()
POLICY = (DOCS / "policy.md").read_text()
FEATURES = (DOCS / "features.md").read_text()
APP = "".join(path.read_text() for path in sorted((ROOT / "src" / "pawl").rglob("*.py")))
TUTORIAL = (DOCS / "tutorial.md").read_text()
PLAYED = {"commands": COMMANDS, "tutorial": TUTORIAL, "models": MODELS, "policy": POLICY, "extending": EXTENDING}


def section(name: str) -> str:
    """The part of the pages of commands about one of them."""
    found = re.search(rf"^## pawl {name}$.*?(?=^## |\Z)", COMMANDS, re.MULTILINE | re.DOTALL)
    assert found, f"no page of docs/commands has a section about pawl {name}"
    return found[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_command_and_option_is_documented(name: str):
    assert re.search(rf"\[`pawl {name}`\]\(commands/\w+\.md#pawl-{name}\)", COMMANDS)
    text = section(name)
    for action in parser_for(name)._actions:
        words = [word for word in action.option_strings if word not in ("-h", "--help", "-C", "--json")]
        assert all(re.search(rf"`{word}\b", text) for word in words), words
        if not action.option_strings and isinstance(action.metavar, str) and name != "run":
            assert f"`{action.metavar}`" in text


def test_every_setting_is_documented_with_its_default():
    for setting in fields(Settings):
        default = getattr(Settings(), setting.name)
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        assert f"| `{setting.name}` | `{shown}` |" in SETTINGS


def test_every_variable_that_is_read_is_documented():
    pattern = r'env(?:ironment)?(?:\.get\(|\[)"([A-Z_]+)"|"([A-Z_]+)" not in env|_folder\(env, "([A-Z_]+)"'
    names = {name for found in re.findall(pattern, APP) for name in found if name}
    assert {"PAWL_CONFIG", "PAWL_STATE", "PAWL_MODEL", "HOME", "NO_COLOR", "OTEL_SDK_DISABLED"} <= names
    names |= foreign_keys() | {f"OTEL_EXPORTER_OTLP_{kind}HEADERS" for kind in ("", "TRACES_")}
    # The HTTP library reads these.
    names |= {"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    assert [name for name in sorted(names) if f"`{name}" not in SETTINGS] == []


TABLES = {
    "[models]": Routes,
    '[models."PATTERN"]': Capabilities,
    "[providers.NAME]": Provider,
    "quirks": Quirks,
    '[prices."PATTERN"]': Rates,
    "[budget]": Budget,
    "[sampling]": Sampling,
    "[local]": LocalSettings,
    "[permissions]": PermissionSettings,
    "[extensions]": ExtensionSettings,
    "[retries]": RetryLimits,
    "[mcp]": McpSettings,
    "[mcp.servers.NAME]": McpServer,
    "[queue]": QueueSettings,
}


def of_table(page: str, head: str) -> set[str]:
    """What stands in the first column of the table with that head."""
    found = re.search(rf"^\| {re.escape(head)} \|.*\n\|[ |-]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert found, f"there is no table about {head}"
    return {name for row in found[1].splitlines() for name in re.findall("`([^`]+)`", row.split("|")[1])}


@pytest.mark.parametrize("table", TABLES)
def test_every_field_of_every_table_of_the_settings_is_documented_and_no_other(table: str):
    wanted = {one.name for one in fields(TABLES[table])} - ({"name"} if table == "[providers.NAME]" else set())
    assert of_table(SETTINGS, f"field of `{table}`") == wanted


def test_every_table_of_the_settings_is_documented():
    for table in fields(SettingsTables):
        assert re.search(rf"^### {table.name}$", SETTINGS, re.MULTILINE), table.name


@pytest.mark.parametrize("page", [SETTINGS, MODELS], ids=["settings", "models"])
def test_the_examples_of_settings_can_be_used_as_they_are(page: str, tmp_path: Path):
    examples = re.findall(r"(?<=^```toml\n).*?(?=^```$)", page, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 2
    for text in examples:
        (tmp_path / "config.toml").write_text(text)
        config = load({"HOME": str(tmp_path), "PAWL_CONFIG": str(tmp_path / "config.toml")})
        local_settings(model_config(config).local)
        assert not is_trusted(config, str(tmp_path))
        permissions_of(config, str(tmp_path))
        hooks_for(config, str(tmp_path))


def test_every_event_of_hooks_and_every_preset_of_permissions_is_documented():
    assert of_table(SETTINGS, "event") == set(HookEvent)
    assert of_table(SETTINGS, "preset of `[permissions]`") == set(presets())


def between(page: str, mark: str) -> str:
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found, mark
    return found[1]


def providers() -> str:
    lines = ["| provider | format | address | key | price |", "| --- | --- | --- | --- | --- |"]
    for one in builtin().values():
        key = " or ".join(f"`{name}`" for name in one.key_env) or "none"
        price = "nothing" if one.local else "known" if one.prices else "unknown"
        lines.append(f"| `{one.name}` | {one.wire} | `{one.base_url}` | {key} | {price} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_providers_is_that_of_the_code():
    assert between(MODELS, "providers") == providers()


@pytest.mark.spec("C1")
def test_the_table_of_the_policy_is_that_of_the_code():
    assert between(POLICY, "policy") == as_markdown()


def faults(kind: type[errors.PawlError]) -> Iterator[type[errors.PawlError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from faults(inner)


@pytest.mark.parametrize("kind", [*faults(errors.ModelError), errors.BudgetExceeded])
def test_every_fault_of_a_model_is_documented_with_its_exit_code(kind: type[errors.PawlError]):
    assert re.search(rf"^\| `{kind('').code}` \|.* \| {kind.exit_code} \|$", MODELS, re.MULTILINE)


def test_every_fault_of_a_script_every_correction_and_every_field_of_the_log_is_documented():
    assert [name for name in FAULTS if f"`{name}`" not in MODELS] == []
    assert [one.name for one in fields(RequestRecord) if f"`{one.name}`" not in MODELS] == []
    for one in corrections().values():
        assert re.search(rf"^\| `{one.name}` \| {one.limit} \|", POLICY, re.MULTILINE), one.name


def test_every_exit_code_is_documented():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PawlError)]
    codes = {kind.exit_code for kind in kinds} | {0, 2, 124}
    assert [code for code in sorted(codes) if not re.search(rf"^\| {code} \|", COMMANDS, re.MULTILINE)] == []


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


ASKED = {
    "run": "run --apply -- mkdir .vscode x",
    "ask": "ask --model scripted:script.toml hello",
    "do": "do help",
    "locate": "locate README",
    "models": "models --offline --model openai/gpt-5",
    "policy": "policy --stage act",
    "prompts": "prompts list",
    "skills": "skills list",
    "agents": "agents list",
    "mcp": "mcp list",
    "permissions": "permissions",
    "trust": "trust",
    "memory": "memory list",
    "requests": "requests",
    "scores": "scores",
    "promote": "promote 2 --allow-protected --dry-run",
    "patch": "patch --path README.md --old hello --new bye",
    "history": "history",
    "diff": "diff",
    "undo": "undo",
    "redo": "redo",
    "checkpoint": "checkpoint --list",
    "restore": "restore --dry-run",
    "doctor": "doctor",
    "gc": "gc",
}


@pytest.mark.whole
def test_every_key_of_every_json_object_is_documented(pawl: Pawl):
    elsewhere = (
        "session",
        "setup",
        "acp",
        "web",
        "fix",
        "verify",
        "dev",
        "loop",
        "spec",
        "queue",
        "worker",
        "audit",
        "approve",
    )  # asked in tests of their own
    assert list(ASKED) == [name for name in OPTIONS if name not in elsewhere]
    pawl("checkpoint", "start")
    (pawl.workspace / "script.toml").write_text('[[turn]]\nanswer = "See README.md:1."\n')
    shared = COMMANDS[: COMMANDS.index("## pawl ")]
    for name, said in zip(ASKED, pawl.many([["--json", *words.split()] for words in ASKED.values()]), strict=True):
        assert said.code == 0, said
        text = shared + section("undo" if name in ("redo", "restore") else name) + section("history")
        unnamed = {key for key in keys(json.loads(said.out)) if f"`{key}`" not in text and f'"{key}"' not in text}
        assert unnamed == set(), name


def test_the_keys_of_one_prompt_and_of_its_faults_are_documented(pawl: Pawl):
    override = Path(pawl.json("doctor")["settings"]).parent / "prompts" / "base.md"
    shown = pawl.json("prompts", "show", "base")
    override.parent.mkdir(parents=True)
    override.write_text("{{nothing}}\n")
    found = pawl.json("prompts", "check", code=52)
    assert found["faults"]
    unnamed = {key for key in (*keys(shown), *keys(found)) if f"`{key}`" not in section("prompts")}
    assert unnamed == set()


@pytest.mark.whole
@pytest.mark.usefixtures("full_protection")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", PLAYED)
def test_the_transcripts_of_a_page_are_what_comes_out(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    room = tmp_path / "room"
    room.mkdir()
    shop = stage(room)
    for name, value in surroundings(room).items():
        monkeypatch.setenv(name, value)
    for name in foreign_keys():
        monkeypatch.delenv(name, raising=False)
    transcript = blocks(PLAYED[page])
    assert transcript
    for block in transcript:
        assert played(block, shop) == block


@pytest.mark.spec("F5")
def test_the_workflow_for_github_is_one_and_its_words_are_those_of_the_command():
    import yaml

    (text,) = re.findall(r"(?<=^```yaml\n).*?(?=^```$)", COMMANDS, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["fix"]["steps"]
    (words,) = (step["run"] for step in steps if "pawl -p" in step.get("run", ""))
    known = {word for action in parser_for("do")._actions for word in action.option_strings}
    assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", words)) <= known


def anchors(page: str) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path):
    text = page.read_text()
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), link
        if anchor:
            assert anchor in anchors(there.read_text()), link


def test_the_readme_fits_its_purpose():
    assert "make demo" in README and "make test" in README
    assert len(README.splitlines()) < 125


@pytest.mark.parametrize("page", ["security", "features"])
def test_the_tests_that_a_page_names_are_there(page: str):
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (DOCS / f"{page}.md").read_text())
    lost = [
        f"{path}::{name}" for path, name in named if not re.search(rf"^ *def {name}\b", (ROOT / path).read_text(), re.M)
    ]
    assert len(named) > 30
    assert lost == []


def test_each_section_of_the_security_page_that_promises_something_names_its_tests():
    page = (DOCS / "security.md").read_text()
    sections = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    without = {"Why each unusual flag is used", "What is not protected against", "More protection", "How it is tested"}
    rows = {
        head: re.findall(r"^\|.+\| `tests/", text, re.MULTILINE)
        for head, text in re.findall(r"^### Tests: (.+)\n((?:(?!#).*\n)+)", page, re.MULTILINE)
    }
    assert without <= sections
    assert {name.casefold() for name in sections - without} <= {head.casefold() for head in rows if rows[head]}


def test_a_feature_without_a_test_or_a_page_is_said_to_be_missing():
    rows = re.findall(r"^\| (?!asked for|---)(.+) \| (.+) \| (.*)\|$", FEATURES, re.MULTILINE)
    assert len(rows) >= 45
    assert [asked for asked, done, shown in rows if not shown.strip() and "**N" not in done] == []
