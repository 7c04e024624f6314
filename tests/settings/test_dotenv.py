"""`.env` files are read like people write them, never executed, and never trusted because they are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.errors import ConfigError
from pawl.settings.config import LARGEST_ENV as LARGEST_BYTES
from pawl.settings.config import environment_of, may_come_from_workspace
from pawl.settings.config import parse_env as parse
from pawl.settings.config import read_env as read

pytestmark = pytest.mark.spec("E9")

CANARY = "c4nary-Zq8vT3xLm2"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# only\n\n   # words", {}),
        ("A=1\nB=2", {"A": "1", "B": "2"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("export A=1\n  export\tB = 2  ", {"A": "1", "B": "2"}),
        ("A=\nB=''\nC=\"\"\nD= # nothing", {"A": "", "B": "", "C": "", "D": ""}),
        ("A=one two # words\nB=a#b\nC=#x", {"A": "one two", "B": "a#b", "C": ""}),
        ("A='a # \"b\" $X \\n'  # words", {"A": 'a # "b" $X \\n'}),
        ('A="a # \\"b\\" \\$X \\n\\t\\\\ \\q \'c\'"', {"A": "a # \"b\" $X \n\t\\ \\q 'c'"}),
        ('A="one\ntwo"\nB=3', {"A": "one\ntwo", "B": "3"}),
        ("A='one\ntwo'\nB=3", {"A": "one\ntwo", "B": "3"}),
        ("A=a=b=c\nB=a'b", {"A": "a=b=c", "B": "a'b"}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=$X costs $5", {"A": "$X costs $5"}),
        ("A='$(rm -rf /)`x`${Y}'", {"A": "$(rm -rf /)`x`${Y}"}),
        ("ключ", None),
        ("A=über 𝔘", {"A": "über 𝔘"}),
    ],
)
def test_what_a_text_says(text: str, values: dict[str, str] | None) -> None:
    if values is None:
        with pytest.raises(ConfigError):
            parse(text, "x")
    else:
        assert parse(text, "x") == values


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (CANARY, "is not NAME=value"),
        (f"1A={CANARY}", "is not NAME=value"),
        (f"A B={CANARY}", "is not NAME=value"),
        (f"export {CANARY}", "is not NAME=value"),
        (f"A='{CANARY}", "opens a quote that is not closed"),
        (f'A="{CANARY}\\"', "opens a quote that is not closed"),
        (f'A="{CANARY}"{CANARY}', "continues after the closing quote"),
        (f"A=$({CANARY})", "refers to A, which Pawl does not expand"),
        (f'A="x${{{CANARY}}}"', "refers to A, which Pawl does not expand"),
        (f"A=`{CANARY}`", "refers to A, which Pawl does not expand"),
        (f"A={CANARY}\0", "gives A a value with a NUL in it"),
    ],
)
@pytest.mark.spec("B13")
def test_a_mistake_names_the_file_and_the_line_and_not_the_value(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"GOOD=1\nMORE='two\nlines'\n{line}")
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert caught.value.message == f"line 4 of {str(file)!r} {told}"
    assert CANARY not in caught.value.advice
    assert caught.value.exit_code == 52


@given(st.text(st.sampled_from("AB_=\"'\\#$({`n \t\n\r1é"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        values = parse(text, "x")
    except ConfigError:
        return
    assert all(name.isascii() and name.isidentifier() for name in values)


names = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True)
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20)


@given(st.dictionaries(names, plain, max_size=4))
def test_what_is_written_in_double_quotes_comes_back(values: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        for sign in ("\\", '"', "$"):
            value = value.replace(sign, f"\\{sign}")
        return value.replace("`", "'")

    text = "\n".join(f'{name}="{quoted(value)}"' for name, value in values.items())
    assert parse(text, "x") == {name: value.replace("`", "'") for name, value in values.items()}


def test_the_environment_wins_over_the_user_and_the_user_over_the_workspace(tmp_path: Path) -> None:
    user = tmp_path / "user.env"
    user.write_text("B_API_KEY=user\nC_API_KEY=user\nOTHER=user\n")
    workspace = "A_API_KEY=workspace\nB_API_KEY=workspace\nC_API_KEY=workspace\n"
    real = {"C_API_KEY": "real", "PATH": "/bin"}
    assert environment_of(real, user=user, workspace=workspace) == {
        "A_API_KEY": "workspace",
        "B_API_KEY": "user",
        "C_API_KEY": "real",
        "OTHER": "user",
        "PATH": "/bin",
    }
    assert real == {"C_API_KEY": "real", "PATH": "/bin"}


def test_a_workspace_that_is_not_trusted_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("A_API_KEY=workspace\nthis is not even a line")
    monkeypatch.chdir(tmp_path)
    assert environment_of({}, user=tmp_path / "nowhere") == {}


REFUSED = """
    OPENAI_BASE_URL ANTHROPIC_BASE_URL VLLM_BASE_URL OLLAMA_HOST HTTPS_PROXY https_proxy ALL_PROXY SSL_CERT_FILE
    HOME PATH XDG_CONFIG_HOME PAWL_CONFIG PAWL_STATE PAWL_API_KEY NODE_OPTIONS PYTHONPATH LD_PRELOAD
    OTEL_EXPORTER_OTLP_ENDPOINT OTEL_X_API_KEY
"""


@pytest.mark.attack("A47")
def test_a_trusted_workspace_brings_keys_and_nothing_that_says_where_they_go(tmp_path: Path) -> None:
    taken = {"OPENAI_API_KEY": "1", "SOME_AUTH_TOKEN": "2"}
    refused = REFUSED.split()
    text = "".join(f"{name}={value}\n" for name, value in taken.items())
    text += "".join(f"{name}=$(evil) and more\n" for name in refused)
    assert environment_of({}, user=tmp_path / "nowhere", workspace=text) == taken
    assert not any(may_come_from_workspace(name) for name in refused)


def test_nothing_is_put_into_the_environment_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("PAWL_TEST_ONLY=1")
    environment_of({}, user=file)
    assert os.getenv("PAWL_TEST_ONLY") is None


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read(tmp_path / "nowhere") == {}
    assert read(tmp_path / "file" / ".env") == {}


def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "pipe", "not a regular file"), (tmp_path, "regular file"), ("/dev/zero", "regular")):
        with pytest.raises(ConfigError, match=why):
            read(Path(path))


def test_a_file_that_is_too_large_or_no_text_is_refused_without_showing_it(tmp_path: Path) -> None:
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_text("A=" + "x" * LARGEST_BYTES)
    binary.write_bytes(b"A=" + CANARY.encode() + b"\xff")
    for path, why in ((large, "larger than"), (binary, "not UTF-8")):
        with pytest.raises(ConfigError, match=why) as caught:
            read(path)
        assert CANARY not in repr(caught.value.args)
        assert caught.value.__cause__ is None
