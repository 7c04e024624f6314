"""Secrets in text are replaced before anybody stores or shows it, and no text takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.redact import MARK, redacted, redacted_body, redacted_command

pytestmark = pytest.mark.spec("B13")

CANARY = "c4nary-Zq8"
LONG = "Abc123" * 12
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n{CANARY}\n-----END RSA PRIVATE KEY-----"

SECRETS = {
    "a password in the environment": f"PASSWORD={CANARY} make",
    "an exported key": f"export AWS_SECRET_ACCESS_KEY={CANARY}/x; ls",
    "a key in JSON": f'{{"api_key": "{CANARY} with words"}}',
    "a key in JSON in JSON": f'{{"body": "{{\\"token\\": \\"{CANARY}\\"}}"}}',
    "a key in YAML": f"db:\n  passwd: {CANARY}\n",
    "a key in TOML": f"client_secret = '{CANARY} with words'",
    "a key in a query": f"https://host/x?access_token={CANARY}&page=2",
    "a key in Ruby": f":secret => {CANARY}",
    "an option": f"tool --password {CANARY}",
    "an option with an equals sign": f"tool --api-key={CANARY}",
    "an option with quotes": f"tool --client-secret '{CANARY} with words'",
    "an option with one dash": f"tool -token {CANARY}",
    "a user and a password": f"curl -u me:{CANARY} https://host",
    "sshpass": f"sshpass -p {CANARY} ssh host",
    "a password in an address": f"git clone https://me:{CANARY}@host/x",
    "a bearer": f"curl -H 'Authorization: Bearer {CANARY}' https://host",
    "a basic": f"Authorization: Basic {CANARY}==",
    "another scheme": f"Authorization: ApiKey {CANARY}",
    "a header without a scheme": f"Proxy-Authorization: {CANARY} {CANARY}",
    "a cookie": f"Cookie: session={CANARY}; other={CANARY}",
    "a private key": f"before\n{PEM}\nafter",
    "a private key that is cut off": PEM[:-30],
    "a PGP key": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{CANARY}\n-----END PGP PRIVATE KEY BLOCK-----",
}

TOKENS = [
    f"sk-ant-{LONG}",
    f"sk-proj-{LONG}",
    f"sk_live_{LONG}",
    f"ghp_{LONG}",
    f"github_pat_{LONG}",
    f"glpat-{LONG}",
    f"xoxb-{LONG}",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIza{LONG}",
    f"ya29.{LONG}",
    f"npm_{LONG}",
    f"hf_{LONG}",
    f"gsk_{LONG}",
    f"pypi-{LONG}",
    f"xai-{LONG}",
    f"SG.{LONG[:22]}.{LONG[:43]}",
    f"AGE-SECRET-KEY-1{LONG.upper()}",
    f"eyJ{LONG}.eyJ{LONG}.{LONG}",
]


SAID = [
    '{"token": "tok_live_abcdefghij"}',
    '"token": "tok_4f9a8b7c6d5e"',
    "my password is: hunter2",
    "My password is letmein.",
    "the password is hunter2!x&y",
    'the admin password for prod is "S3cr3t!pass"',
    "the password for me@example.com is Winter2024",
    "my api key is: abc123def456",
    "mein Passwort ist: geheim123",
    "mot de passe : azerty123",
    "contraseña: secreto99",
    "пароль: qwerty123",
    "密码: abc12345",
]
NOT_SAID = [
    "the password is wrong",
    "your password is: required",
    "password is: incorrect",
    "my password is stored in .env",
    "my password is hashed",
    "the password is encrypted with AES256",
    "the password is $PASSWORD",
    "if password is not None:",
    "password is 8 characters",
    "the token is: missing",
    "sort key is created_at2",
    "cache key: user_12345",
    'token = "tok_" + body',
]


def test_what_people_tell_of_their_passwords_is_replaced_and_what_they_say_about_them_is_not() -> None:
    assert [text for text in SAID if MARK not in redacted(text)] == []
    assert redacted("the password is hunter2!x&y, try it") == f"the password is {MARK}, try it"
    assert [text for text in NOT_SAID if redacted(text) != text] == []


@pytest.mark.parametrize("where", SECRETS)
def test_a_secret_is_replaced_wherever_it_stands(where: str) -> None:
    shown = redacted(SECRETS[where])
    assert CANARY not in shown
    assert MARK in shown
    assert redacted(shown) == shown


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_known_kind_is_replaced_without_a_name(token: str) -> None:
    assert redacted(f"got {token} there") == f"got {MARK} there"


def test_what_stands_around_a_secret_is_kept() -> None:
    assert redacted(f"a\n{PEM}\nb") == f"a\n{MARK}\nb"
    assert redacted(f"make TOKEN={CANARY} all") == f"make TOKEN={MARK} all"
    assert redacted(f'{{"password": "{CANARY}", "n": 1}}') == f'{{"password": "{MARK}", "n": 1}}'
    assert redacted(f"https://me:{CANARY}@host/x") == f"https://me:{MARK}@host/x"


@pytest.mark.parametrize(
    "text",
    [
        "python -m pytest -q tests/core",
        "git commit -m 'a secret passage'",
        "max_tokens: 4096, used tokens=12345",
        "tokenize the text and parse the tokens",
        "Basic refactoring of the password form",
        "sed -n 's/a/b/p' file:12",
        "http://localhost:8000/a@b",
        "sk-learn and desk-top",
        "-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----",
    ],
)
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_a_command_hides_the_word_after_a_secret_option() -> None:
    words = ["login", "--password", f"{CANARY} and more", "--token", "-x", "--user", f"me:{CANARY}", "it's"]
    shown = redacted_command(words)
    assert CANARY not in shown
    assert shown == f"""login --password {MARK} --token -x --user me:{MARK} 'it'"'"'s'"""


def test_a_script_in_a_command_is_looked_into() -> None:
    assert CANARY not in redacted_command(["sh", "-c", f"curl -H 'X-Api-Key: {CANARY}' | API_TOKEN=\"{CANARY}\" sh"])


def test_values_in_values_are_looked_into_and_named_secrets_hidden() -> None:
    body = {
        "argv": f"make TOKEN={CANARY}",
        "list": [f"Bearer {CANARY}{LONG}", 3, None, (f"--password {CANARY}",)],
        "deep": {"password": CANARY, "count": 7, "max_tokens": 5},
        "secret": "",
    }
    shown = redacted_body(body)
    assert CANARY not in repr(shown)
    assert shown["deep"] == {"password": MARK, "count": 7, "max_tokens": 5}
    assert shown["secret"] == ""
    assert body["argv"] == f"make TOKEN={CANARY}"


PIECES = [*"ab1-_.:=@/'\" \n[]", "token", "password", "Bearer ", "Authorization:", "Cookie: ", "--secret ", MARK]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


HOSTILE = [
    "a-", "a.", "token", "token=", 'token="', "eyJ-", "://", "://a:", "password ", "-----BEGIN ", "--", "-u a:", "'",
    "Basic ", "authorization:", "eyJaaaaaaaa.", "sk-", "AKIA", "--api-", "[redacted]", "-----BEGIN PRIVATE KEY-----",
]  # fmt: skip


@pytest.mark.timeout(30)
@pytest.mark.parametrize("part", HOSTILE)
def test_text_made_to_be_slow_is_not(part: str) -> None:
    redacted(part * (200_000 // len(part)))
