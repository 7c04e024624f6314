"""`pawl models`: what is configured, reachable and priced, through real processes and real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from models.provider_socket import ProviderSocket, head, hold, provider, refusal, whole
from ui.cli.console import Pawl

from pawl.models.providers import builtin

CANARY = "sk-canary-0a1b2c3d4e5f60718293"

Settings = Callable[[str], None]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Writes the user's settings, in an environment without keys."""
    for one in builtin().values():
        for name in (*one.key_env, *one.url_env):
            monkeypatch.delenv(name, raising=False)

    def write(text: str) -> None:
        (tmp_path / "config.toml").write_text(text)
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))

    write("")
    return write


def listing(*names: str) -> list[bytes]:
    """The list of models that a server of the OpenAI format gives."""
    return [whole(json.dumps({"data": [{"id": name} for name in names]}).encode())]


def here(playing: ProviderSocket, more: str = 'key_env = ["HERE_API_KEY"]') -> str:
    return f'[models]\ndefault = "here/m"\n[providers.here]\nwire = "openai"\nbase_url = "{playing.url}/v1"\n{more}\n'


def only(pawl: Pawl, *words: str, code: int = 0) -> dict:
    (model,) = pawl.json("models", *words, code=code)["models"]
    return model


def test_with_no_model_it_says_how_to_name_one(pawl: Pawl, settings: Settings):
    said = pawl("models")
    assert said.code == 0
    assert said.lines[0] == "no model is configured"
    assert all(way in said.lines[1] for way in ("pawl setup", "--model", "PAWL_MODEL"))
    body = pawl.json("models")
    assert body["models"] == []
    assert [one["name"] for one in body["providers"]] == list(builtin())


@pytest.mark.spec("E9")
def test_a_model_that_is_served_and_answers_is_ready(pawl: Pawl, settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    with provider(listing("m"), listing("m")) as playing:
        settings(here(playing))
        model = only(pawl)
        said = pawl("models")
    assert (model["model"], model["used_for"], model["ready"]) == ("here/m", ["default"], True)
    assert (model["detail"], model["advice"]) == ("reachable", "")
    assert said.code == 0 and "✓ reachable" in said.out and "keys are set for: here" in said.out
    assert playing.requests[0].target == "/v1/models"
    assert playing.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in said.out + said.err


def test_how_long_a_model_may_be_silent_is_the_users_to_say(pawl: Pawl, settings: Settings):
    with provider([head(), hold]) as playing:
        settings(f"model_retries = 0\n{here(playing, 'first_word_seconds = 1')}")
        said = pawl("ask", "what is this?")
    assert said.code == 75
    assert "'here/m' said nothing for 1 s" in said.err and "first_word_seconds of [providers.here]" in said.err


def test_a_model_that_the_server_does_not_list_is_not_ready(pawl: Pawl, settings: Settings):
    with provider(listing("other")) as playing:
        settings(here(playing, "local = true"))
        model = only(pawl, code=1)
    assert (model["ready"], model["detail"]) == (False, "reachable, and does not list this model")


@pytest.mark.spec("E9")
def test_a_key_that_is_missing_is_named_with_where_it_is_set(pawl: Pawl, settings: Settings):
    with provider() as playing:
        settings(here(playing))
        said = pawl("models")
        model = only(pawl, code=1)
    assert said.code == 1
    assert "✗ there is no key for 'here'" in said.out and "set HERE_API_KEY" in said.out
    assert model["ready"] is False and "HERE_API_KEY" in model["advice"]
    assert playing.requests == []


@pytest.mark.spec("E9")
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_a_key_that_is_refused_is_told_from_one_that_is_missing(
    pawl: Pawl, settings: Settings, monkeypatch: pytest.MonkeyPatch, status: str
):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    bad = refusal(status, {"error": f"bad key {CANARY}"})
    with provider(bad, bad) as playing:
        settings(here(playing))
        said, asked = pawl("models"), pawl("ask", "anybody?")
    assert said.code == 1 and f"does not accept the key ({status[:3]})" in said.out
    assert asked.code == 41 and "does not accept the key" in asked.err
    assert "check that HERE_API_KEY is whole" in said.out and "check that HERE_API_KEY is whole" in asked.err
    assert CANARY not in said.out + said.err + asked.out + asked.err


def test_a_server_that_is_not_there_is_said_with_its_address(pawl: Pawl, settings: Settings):
    with provider() as playing:
        pass
    settings(here(playing, "local = true"))
    model = only(pawl, code=1)
    assert model["ready"] is False and f"127.0.0.1:{playing.port} cannot be reached" in model["detail"]


def test_offline_nobody_is_asked_and_nothing_is_called_ready(pawl: Pawl, settings: Settings):
    with provider() as playing:
        settings(here(playing, "local = true"))
        model = only(pawl, "--offline")
        said = pawl("models", "--offline")
    assert (model["ready"], model["detail"]) == (None, "")
    assert said.code == 0 and "not looked for" in said.out
    assert playing.requests == []


def test_a_local_server_needs_no_key_and_costs_nothing(pawl: Pawl, settings: Settings, monkeypatch: pytest.MonkeyPatch):
    with provider(listing("qwen3-coder:30b")) as playing:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{playing.port}")
        body = pawl.json("models", "--model", "ollama/qwen3-coder:30b")
    (model,) = body["models"]
    assert (model["ready"], model["input_usd_per_million"], model["output_usd_per_million"]) == (True, 0.0, 0.0)
    (ollama,) = (one for one in body["providers"] if one["name"] == "ollama")
    address = f"http://127.0.0.1:{playing.port}/v1"
    assert ollama == {"name": "ollama", "address": address, "has_key": True, "key_names": [], "local": True}


@pytest.mark.spec("E6")
def test_a_price_is_known_unknown_or_the_users_own(pawl: Pawl, settings: Settings):
    settings("""
        [models]
        default = "openai/gpt-5"
        [models.slots]
        code = "openai/no-such-model"
        plan = "anthropic/claude-sonnet-4-5"
        [prices."anthropic/*"]
        input = 1.5
        output = 2
        """)
    found = {one["model"]: one for one in pawl.json("models", "--offline")["models"]}
    known, unknown, own = found["openai/gpt-5"], found["openai/no-such-model"], found["anthropic/claude-sonnet-4-5"]
    assert known["input_usd_per_million"] > 0 and known["output_usd_per_million"] > known["input_usd_per_million"]
    assert (unknown["input_usd_per_million"], unknown["output_usd_per_million"]) == (None, None)
    assert (own["input_usd_per_million"], own["output_usd_per_million"]) == (1.5, 2.0)
    shown = pawl("models", "--offline").out
    assert "unknown" in shown and "1.5 / 2" in shown


def test_each_model_is_listed_once_with_all_that_it_is_used_for(pawl: Pawl, settings: Settings):
    settings("""
        [models]
        default = "openai/gpt-5"
        [models.slots]
        plan = "openai/gpt-5"
        [models.fallbacks]
        "openai/gpt-5" = ["ollama/qwen3"]
        """)
    found = pawl.json("models", "--offline")["models"]
    assert [(one["model"], one["used_for"]) for one in found] == [
        ("openai/gpt-5", ["default", "plan"]),
        ("ollama/qwen3", ["instead of openai/gpt-5"]),
    ]


def test_what_a_model_can_do_is_as_the_user_says(pawl: Pawl, settings: Settings):
    settings('[models."ollama/qwen3*"]\ncontext = 32768\ntools = "text"\n')
    model = only(pawl, "--offline", "--model", "ollama/qwen3")
    assert (model["context"], model["tools"]) == (32768, "text")
    assert only(pawl, "--offline", "--model", "ollama/other")["tools"] == "native"


@pytest.mark.parametrize("kind", ["local", "scripted"])
def test_a_file_is_looked_for(pawl: Pawl, settings: Settings, tmp_path: Path, kind: str):
    path = tmp_path / "model"
    assert only(pawl, "--model", f"{kind}:{path}", code=1)["detail"] == "there is no such file"
    path.write_text("")
    model = only(pawl, "--model", f"{kind}:{path}")
    assert (model["ready"], model["input_usd_per_million"]) == (True, 0.0)


def test_the_environment_names_a_model_where_the_settings_name_none(
    pawl: Pawl, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PAWL_MODEL", "ollama/qwen3")
    assert only(pawl, "--offline")["model"] == "ollama/qwen3"
    monkeypatch.delenv("PAWL_MODEL")
    (tmp_path / ".env").write_text("PAWL_MODEL=ollama/of-the-file\n")
    assert only(pawl, "--offline")["model"] == "ollama/of-the-file"
    (tmp_path / ".env").unlink()
    (pawl.workspace / ".env").write_text("PAWL_MODEL=ollama/of-the-repository\n")
    settings(f'[trust]\nfolders = ["{pawl.workspace}"]\n')
    assert pawl.json("models", "--offline")["models"] == []


@pytest.mark.spec("E9")
def test_a_trusted_workspace_brings_keys_and_never_where_they_go(pawl: Pawl, settings: Settings):
    (pawl.workspace / ".env").write_text(f"OPENAI_API_KEY={CANARY}\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    trusted = f'[trust]\nfolders = ["{pawl.workspace}"]\n'
    for text, has_key in (("", False), (trusted, True)):
        settings(text)
        (openai,) = (one for one in pawl.json("models", "--offline")["providers"] if one["name"] == "openai")
        assert (openai["has_key"], openai["address"]) == (has_key, "https://api.openai.com/v1")


WRONG_TABLES = {
    "models": (
        '[models]\ndefault = "opnai/gpt-5"\n[models.slots]\ncode = "gpt-5"\n[models.fallbacks]\n"openai/a" = [1]',
        ["no provider 'opnai'", "slots.code: 'gpt-5' is not a model's name", "fallbacks.openai/a must be a list"],
    ),
    "patterns": (
        '[models."ollama/*"]\ntools = "maybe"\ncontext = 0\nsize = 7\nquirks = { strem = true }',
        ["tools must be one of native, text", "context must be at least 1", "size is not a field", "strem"],
    ),
    "providers": (
        '[providers.mine]\nwire = "soap"\n[providers.local]\n[providers.groq]\nbase_url = "groq.com"\nkeys = "K"',
        ["providers.mine.base_url is missing", "wire must be one of", "cannot be called 'local'", "must be an address"],
    ),
    "prices": (
        '[prices."a/*"]\ninput = -1\n[prices."b/*"]\ninput = 1\nouput = 2',
        ["must be an amount from 0 on, not -1", "prices.'a/*'.output is missing", "ouput is not a field"],
    ),
    "budget": (
        '[budget]\nmoney = "much"\ntokens = 0\nturns = 1.5\nhours = 2',
        ["budget.money must be an amount", "tokens must be at least 1", "turns must be a whole number", "budget.hours"],
    ),
    "sampling": (
        '[sampling]\ntemperature = "hot"\ntop_p = 2\nmax_output = 0\nbeams = 3',
        ["sampling.temperature", "top_p must not be above 1", "max_output must be at least 1", "sampling.beams"],
    ),
    "local": ("[local]\ncontext = 0\nthreads = 0.5\ngpu = 1", ["local.context", "local.threads", "local.gpu"]),
}


@pytest.mark.parametrize("table", WRONG_TABLES)
def test_a_wrong_table_is_refused_with_every_mistake_at_once(pawl: Pawl, settings: Settings, table: str):
    text, mistakes = WRONG_TABLES[table]
    settings(text)
    said = pawl("models", "--offline")
    assert (said.code, said.out) == (52, "")
    assert [mistake for mistake in mistakes if mistake not in said.err] == []


def test_what_is_not_a_table_or_no_setting_at_all_is_refused_with_the_names_there_are(pawl: Pawl, settings: Settings):
    settings('models = "openai/gpt-5"\nmodel = "openai/gpt-5"\n')
    said = pawl("models", "--offline")
    assert said.code == 52
    assert "models must be a table" in said.err and "'model' is not a setting" in said.err
    assert all(name in said.err for name in ("providers", "prices", "budget", "sampling", "local", "trust"))


def test_an_address_in_the_environment_that_is_none_is_refused_by_its_name(
    pawl: Pawl, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "example.invalid/v1")
    said = pawl("models", "--offline", "--model", "openai/gpt-5")
    assert said.code == 52 and "OPENAI_BASE_URL" in said.err


@pytest.mark.spec("E9")
def test_a_fallback_that_the_user_listed_takes_over_and_is_told(pawl: Pawl, settings: Settings, tmp_path: Path):
    busy, other = tmp_path / "busy.toml", tmp_path / "other.toml"
    busy.write_text('[[turn]]\ntimes = 0\nfault = { kind = "overloaded", message = "too many people" }\n')
    other.write_text('[[turn]]\ntimes = 0\nanswer = "Here."\n')
    assert pawl("ask", "--model", f"scripted:{busy}", "anybody?").code == 75
    settings(f'[models.fallbacks]\n"scripted:{busy}" = ["scripted:{other}"]\n')
    body = pawl.json("ask", "--model", f"scripted:{busy}", "anybody?")
    assert body["answer"] == "Here."
    assert body["fell_back"] == [
        {"model": f"scripted:{busy}", "to": f"scripted:{other}", "why": "too many people"},
    ]
    said = pawl("ask", "--model", f"scripted:{busy}", "anybody?")
    assert "too many people" in said.err and "takes over, as you configured" in said.err


def test_the_reasoning_is_shown_line_by_line_and_only_when_asked_for(pawl: Pawl, settings: Settings, tmp_path: Path):
    script = tmp_path / "script.toml"
    script.write_text("""
        [[turn]]
        times = 0
        chunks = [{ thought = "It may" }, { thought = " be\\nor" }, { thought = " not." }, "Yes."]
        """)
    said = pawl("ask", "--model", f"scripted:{script}", "--thoughts", "is it?")
    assert said.out == "Yes.\n" and said.err.splitlines()[:2] == ["… It may be", "… or not."]
    assert "may" not in pawl("ask", "--model", f"scripted:{script}", "is it?").err


def test_of_a_long_input_its_start_and_its_end_are_sent_and_the_user_is_told(
    pawl: Pawl, settings: Settings, tmp_path: Path
):
    script = tmp_path / "script.toml"
    script.write_text("""
        [[turn]]
        match = { user_regex = "(?s)first line.*50,022 bytes left out.*last line" }
        answer = "Seen."
        """)
    long = b"first line\n" + b"x" * 250_000 + b"\nlast line\n"
    said = pawl("ask", "--model", f"scripted:{script}", "what failed?", stdin=long)
    assert said.out == "Seen.\n", said.err
    assert "50,022 bytes in its middle are not sent" in said.err


@pytest.mark.parametrize("command", [("models", "--offline"), ("ask", "x")])
def test_a_wrong_model_on_the_command_line_is_blamed_on_the_option(pawl: Pawl, settings: Settings, command):
    said = pawl(*command, "--model", "nonsense")
    assert said.code == 52 and "--model: 'nonsense' is not a model's name" in said.err
    assert "settings" not in said.err and "default" not in said.err


def test_only_the_model_that_is_named_is_listed(pawl: Pawl, settings: Settings):
    settings('[models.fallbacks]\n"openai/gpt-5" = ["ollama/qwen3"]\n')
    assert only(pawl, "--offline", "--model", "ollama/other")["model"] == "ollama/other"


def test_a_wrong_provider_is_one_mistake_and_not_one_for_each_of_its_models(pawl: Pawl, settings: Settings):
    settings('[models]\ndefault = "mine/m"\n[providers.mine]\nwire = "soap"\nbase_url = "http://127.0.0.1:9/v1"\n')
    said = pawl("models", "--offline")
    assert said.code == 52 and "wire must be one of" in said.err and "no provider" not in said.err
