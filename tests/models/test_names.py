"""What models are called, who serves them, and what they can do."""

from __future__ import annotations

import tomllib

import pytest

from pawl.core.errors import ConfigError, NotAuthorized, UnknownModel
from pawl.models.providers import (
    CallStyle,
    Capabilities,
    EditBlock,
    Endpoint,
    ModelName,
    Quirks,
    ReasoningSwitch,
    SchemaCarrier,
    Wire,
    builtin,
    capabilities,
    merged,
    rules,
)
from pawl.models.router import endpoint_for


def tables(text: str) -> dict[str, object]:
    return tomllib.loads(text)


@pytest.mark.spec("E9", "F10")
@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter", "anthropic/claude-sonnet-4.5"),
        ("openrouter/qwen/qwen3-coder:free", "openrouter", "qwen/qwen3-coder:free"),
        ("ollama/qwen2.5-coder:1.5b", "ollama", "qwen2.5-coder:1.5b"),
        ("local:/models/a b.gguf", "local", "/models/a b.gguf"),
        ("scripted:turns.toml", "scripted", "turns.toml"),
    ],
)
def test_a_name_is_taken_apart_and_put_together_again(text: str, provider: str, name: str):
    parsed = ModelName.parse(text)
    assert (parsed.provider, parsed.name) == (provider, name)
    assert str(parsed) == text


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("openia/gpt-5", "did you mean 'openai'?"),
        ("OpenAI/gpt-5", "did you mean 'openai'?"),
        ("google/gemini-2.5-pro", "did you mean 'gemini'?"),
        ("claude-sonnet-4-5", "did you mean 'anthropic/claude-sonnet-4-5'?"),
        ("gpt-5", "did you mean 'openai/gpt-5'?"),
        ("zzz/model", "[providers.zzz]"),
        ("qwen", "write provider/name"),
        ("local:", "local:FILE"),
        ("openai/", "write provider/name"),
        ("openai//x", "write provider/name"),
        ("openai/two words", "write provider/name"),
        ("", "write provider/name"),
    ],
)
def test_a_name_that_nobody_serves_is_refused_with_what_may_have_been_meant(text: str, advice: str):
    with pytest.raises(UnknownModel) as caught:
        ModelName.parse(text)
    assert advice in caught.value.advice


@pytest.mark.spec("E9")
def test_a_provider_of_the_user_serves_models_like_any_other():
    providers = merged(
        tables('[corp]\nbase_url = "https://llm.corp.example/v1/"\nwire = "openai"\nkey_env = "CORP_KEY"')
    )
    name = ModelName.parse("corp/team/model-1", providers)
    assert endpoint_for(name, providers, {"CORP_KEY": "k-1"}) == Endpoint(
        wire=Wire.OPENAI,
        base_url="https://llm.corp.example/v1",
        name="team/model-1",
        provider="corp",
        key="k-1",
        key_name="CORP_KEY",
    )


def test_a_table_of_a_known_provider_changes_only_what_it_says():
    providers = merged(tables('[openai]\nbase_url = "http://127.0.0.1:9/v1"\nquirks = { seed = false }'))
    assert providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert providers["openai"].key_env == builtin()["openai"].key_env
    assert providers["openai"].quirks == {**builtin()["openai"].quirks, "seed": False}
    assert providers["anthropic"] == builtin()["anthropic"]


def test_every_mistake_in_the_providers_is_reported_at_once():
    wrong = tables(
        """
        [one]
        wire = "opnai"
        base_url = "ftp://x"
        [two]
        base_url = "http://127.0.0.1/v1"
        local = "yes"
        key_envs = "A"
        [local]
        wire = "openai"
        [openai]
        quirks = { max_tokens_feild = "x" }
        """
    )
    with pytest.raises(ConfigError) as caught:
        merged(wrong)
    for part in (
        "providers.one.wire must be one of openai, anthropic, gemini, not 'opnai'; did you mean 'openai'?",
        "providers.one.base_url must be an address",
        "providers.two.wire is missing",
        "providers.two.local must be true or false, not 'yes'",
        "providers.two.key_envs is not a field; did you mean 'key_env'?",
        "a provider cannot be called 'local'",
        "quirks.max_tokens_feild is not a field; did you mean 'max_tokens_field'?",
    ):
        assert part in caught.value.message


def test_an_address_with_a_password_in_it_is_refused_without_repeating_it():
    with pytest.raises(ConfigError) as caught:
        merged(tables('[one]\nwire = "openai"\nbase_url = "https://me:hunter2@host/v1"'))
    assert "hunter2" not in str(caught.value)


@pytest.mark.spec("E9")
def test_the_key_is_the_first_variable_that_is_set():
    gemini = builtin()["gemini"]
    assert gemini.key({"GOOGLE_API_KEY": "b"}) == "b"
    assert gemini.key({"GEMINI_API_KEY": " a\n", "GOOGLE_API_KEY": "b"}) == "a"


def test_a_missing_key_is_said_with_the_variables_and_where_one_is_made():
    with pytest.raises(NotAuthorized) as caught:
        builtin()["anthropic"].key({"ANTHROPIC_API_KEY": " "})
    assert "ANTHROPIC_API_KEY" in caught.value.advice
    assert "https://" in caught.value.advice


@pytest.mark.spec("F10")
def test_a_server_on_this_machine_wants_no_key():
    for name in ("ollama", "llamacpp", "vllm", "lmstudio"):
        assert builtin()[name].key({}) == ""
        assert builtin()[name].local


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("10.0.0.5", "http://10.0.0.5:11434/v1"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
        ("http://gpu", "http://gpu:80/v1"),
        ("https://gpu/", "https://gpu:443/v1"),
        ("http://gpu:1/ollama/v1", "http://gpu:1/ollama/v1"),
        ("[::1]:11434", "http://[::1]:11434/v1"),
    ],
)
def test_the_variable_of_ollama_is_read_as_ollama_reads_it(host: str, address: str):
    assert builtin()["ollama"].address({"OLLAMA_HOST": host}) == address


def test_a_variable_that_is_no_address_is_named():
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        builtin()["openai"].address({"OPENAI_BASE_URL": "not an address"})
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        builtin()["ollama"].address({"OLLAMA_HOST": "host:port"})


def test_every_provider_that_comes_with_pawl_makes_an_endpoint():
    for provider in builtin().values():
        endpoint = endpoint_for(
            ModelName(provider=provider.name, name="m"), builtin(), dict.fromkeys(provider.key_env, "key")
        )
        assert endpoint.base_url.startswith("https://") != provider.local
        assert endpoint.key == ("" if provider.local else "key")


@pytest.mark.spec("C2", "E9")
def test_a_model_departs_from_its_provider_where_the_data_says_so():
    def quirks(name: str) -> Quirks:
        return endpoint_for(ModelName.parse(name), builtin(), {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}).quirks

    assert quirks("openai/gpt-5") == Quirks(
        max_tokens_field="max_completion_tokens",
        reasoning=ReasoningSwitch.EFFORT,
        schema=SchemaCarrier.JSON_SCHEMA,
        temperature=False,
        top_p=False,
        stop=False,
    )
    assert quirks("openai/gpt-4.1").reasoning is ReasoningSwitch.NONE
    assert quirks("anthropic/claude-sonnet-4-5-20250929").reasoning is ReasoningSwitch.NATIVE
    assert quirks("anthropic/claude-sonnet-4-5-20250929").temperature
    assert quirks("anthropic/claude-opus-5").reasoning is ReasoningSwitch.ADAPTIVE


@pytest.mark.spec("F10")
def test_capabilities_come_from_patterns_later_ones_over_earlier_ones():
    assert capabilities("local:/a/b.gguf") == Capabilities(
        tools=CallStyle.NATIVE,
        schema=CallStyle.NATIVE,
        context=8192,
        max_output=2048,
        edits=(EditBlock.FILE,),
        once=True,
    )
    assert capabilities("openai/gpt-5").context == 400_000
    assert capabilities("nobody/knows") == Capabilities()


@pytest.mark.parametrize(
    ("name", "quirks"),
    [
        ("gemini/gemini-2.5-pro", {"reasoning_off": "128"}),
        ("gemini/gemini-3-pro-preview", {"reasoning_off": "low"}),
        ("gemini/gemini-2.5-flash", {}),
    ],
)
def test_a_model_that_always_thinks_is_not_asked_to_stop(name: str, quirks: dict[str, str]):
    assert capabilities(name).quirks == quirks


def test_the_user_says_what_a_model_can_do():
    said = rules(tables('["ollama/*"]\ncontext = 32768\n["ollama/qwen*"]\ntools = "native"\nquirks = { seed = false }'))
    can = capabilities("ollama/qwen2.5-coder:7b", said)
    assert (can.context, can.tools, can.quirks) == (32768, CallStyle.NATIVE, {"seed": False})


def test_every_mistake_in_what_is_said_of_models_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        rules(
            tables(
                '["a/*"]\ntools = "nativ"\ncontext = 0\n["b/*"]\nedits = ["diff"]\nschemas = "text"\nquirks.stop = 1'
            )
        )
    for part in (
        "tools must be one of",
        "context must be at least 1",
        "edits",
        "schemas is not a field",
        "stop",
    ):
        assert part in caught.value.message
