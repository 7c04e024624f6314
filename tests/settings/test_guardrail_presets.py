"""Guardrails: named presets, what they call secret, protected and out of reach, and when the user is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.errors import ConfigError
from pawl.settings.guardrails import Breach, Guardrails, Limit, Touched, parse, preset, preset_text, presets

pytestmark = pytest.mark.spec("A15")

STANDARD, STRICT = preset("standard"), preset("strict")


def test_the_presets_have_the_figures_of_the_specification():
    assert presets() == ("standard", "strict")
    assert (STRICT.files, STRICT.lines) == (3, 100)
    assert (STANDARD.files, STANDARD.lines) == (5, 100)
    for guardrails in (STRICT, STANDARD):
        assert (guardrails.file_bytes, guardrails.patch_lines, guardrails.line_edits) == (1 << 20, 50, 30)
    assert preset() == STANDARD
    assert (STRICT.secret, STRICT.protected, STRICT.forbidden) == (
        STANDARD.secret,
        STANDARD.protected,
        STANDARD.forbidden,
    )


@pytest.mark.spec("B13")
@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/b/.env",
        ".ENV",
        ".Env.Local",
        ".env.production",
        "prod.env",
        "server.key",
        "x/SERVER.KEY",
        "ca.pem",
        "store.p12",
        "store.pfx",
        "id_rsa",
        "id_rsa_work",
        "id_ed25519",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".ssh/config",
        "home/.aws/credentials",
        "./.env",
        "a/../.env",
        "a//.env",
        ".env/",
        ".env.",
        ".env ",
        ".e\u200dnv",
        ".env:stream",
    ],
)
def test_files_that_hold_keys_are_secret_in_every_spelling(path: str):
    assert STANDARD.is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "web/.env.sample",
        ".env.template",
        "id_rsa.pub",
        "environment.py",
        "keys.py",
        "monkey",
        "src/.env/bin/python",
        "pem.txt",
        "docs/netrc.md",
    ],
)
def test_files_that_only_sound_like_it_are_not(path: str):
    assert not STANDARD.is_secret(path)


@pytest.mark.attack("A12", "A49")
@pytest.mark.parametrize(
    "path",
    [
        ".vscode/tasks.json",
        "sub/.VSCODE/settings.json",
        ".vscode",
        ".idea/workspace.xml",
        ".mcp.json",
        "AGENTS.md",
        "deep/in/Agents.MD",
        "CLAUDE.md",
        ".pawl/config.toml",
        ".envrc",
        ".githooks/pre-commit",
        ".husky/pre-commit",
        ".github/workflows/ci.yml",
        ".pre-commit-config.yaml",
        ".claude/settings.json",
        ".cursor/rules/a.md",
        ".git/config",
    ],
)
def test_files_that_configure_or_execute_are_protected(path: str):
    assert STANDARD.is_protected(path)


@pytest.mark.parametrize(
    "path", ["src/app.py", ".github/CODEOWNERS", "vscode/tasks.json", "my.mcp.json.txt", ".gitignore"]
)
def test_ordinary_files_are_not_protected(path: str):
    assert not STANDARD.is_protected(path)


@pytest.mark.attack("A12")
@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/hooks/pre-commit",
        ".GIT/HOOKS/x",
        "a/b/.Git/config",
        ".git./config",
        ".g\u200cit/config",
        "GIT~1/x",
    ],
)
def test_the_folder_of_git_is_out_of_reach_at_any_depth_and_in_any_case(path: str):
    assert STANDARD.never(path)


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "git/x", "x.git", "a.git/x"])
def test_names_beside_it_are_within_reach(path: str):
    assert not STANDARD.never(path)


def test_the_user_is_asked_above_the_limits_and_not_at_them():
    at = [Touched(path=f"f{number}", changed_lines=100) for number in range(3)]
    assert STRICT.check(at) == ()
    above = [*at, Touched(path="f3", changed_lines=101)]
    breaches = STRICT.check(above)
    assert breaches == (
        Breach(limit=Limit.FILES, allowed=3, found=4),
        Breach(limit=Limit.LINES, allowed=100, found=101, path="f3"),
    )
    assert [breach.message for breach in breaches] == [
        "4 files change; the guardrail asks above 3",
        "101 lines of 'f3' change; the guardrail asks above 100",
    ]
    assert STANDARD.check(above) == breaches[1:]


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(ConfigError, match="no guardrail preset 'lax'") as caught:
        preset("lax")
    assert "standard, strict" in caught.value.advice


def test_a_preset_of_ones_own_extends_one_that_comes_with_pawl():
    own = parse(
        "mine", 'extends = "strict"\n[limits]\nlines = 20\n[paths]\nprotected = ["*.sql"]\n[examples]\nprotected = []'
    )
    assert (own.name, own.files, own.lines) == ("mine", 3, 20)
    assert own.is_protected("db/schema.sql") and own.is_secret(".env")


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ('secret = ["a.txt"]', "'a.txt' should be secret"),
        ('not_secret = [".env"]', "'.env' should not be secret"),
        ('forbidden = ["a.txt"]', "'a.txt' should be forbidden"),
        ('not_protected = ["AGENTS.md"]', "'AGENTS.md' should not be protected"),
    ],
)
def test_a_preset_that_disagrees_with_its_own_examples_is_refused(example: str, message: str):
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        parse("mine", f'extends = "standard"\n[examples]\n{example}\n')


@pytest.mark.parametrize("name", presets())
def test_the_presets_that_come_with_pawl_agree_with_their_examples(name: str):
    assert parse(name, preset_text(name)) == preset(name)


def test_stars_stay_within_a_name_and_double_stars_do_not():
    guardrails = Guardrails(
        name="x", files=1, lines=1, file_bytes=1, patch_lines=1, line_edits=1, protected=("a/*.txt", "b/**/c?", "d+(e)")
    )
    assert guardrails.is_protected("a/1.txt") and not guardrails.is_protected("a/b/1.txt")
    assert guardrails.is_protected("b/c1") and guardrails.is_protected("x/b/1/2/c3")
    assert not guardrails.is_protected("b/1/c") and not guardrails.is_protected("bb/c1")
    assert guardrails.is_protected("d+(e)") and not guardrails.is_protected("dde")


@given(st.lists(st.text(max_size=6), max_size=6), st.sampled_from([".env", ".ENV", ".Env.local", "x.PEM"]))
def test_a_secret_is_a_secret_in_whatever_folder(folders: list[str], name: str):
    assert STANDARD.is_secret("/".join([*folders, name]))


NAMES = st.sampled_from(
    [
        ".env",
        "x.key",
        "X.PEM",
        "id_rsa",
        "id_rsa.pub",
        "config",
        ".ssh",
        ".env.example",
        "a.py",
        "key",
        "env",
        ".ENV.",
        "x.pem ",
    ]
)


@given(st.lists(NAMES | st.text(alphabet="ab./:é \n", min_size=1).filter(lambda name: "/" not in name)), NAMES, NAMES)
def test_one_look_at_a_folder_finds_the_secrets_that_each_name_tells(names: list[str], above: str, folder: str):
    for place in ("", folder, f"{above}/{folder}", ".kube", "x/.aws"):
        every = [f"{place}/{name}" if place else name for name in names]
        found = [name for name, path in zip(names, every, strict=True) if STANDARD.is_secret(path)]
        assert STANDARD.secrets_among(place, names) == found
