"""Shell commands are read into what they would run, and what cannot be known is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.settings.shell import LONGEST, Doubt, read_shell


def commands(text: str) -> list[list[str]]:
    return [[word.text for word in one.words] for one in read_shell(text).commands]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("ls 'a b' \"c d\" e\\ f", [["ls", "a b", "c d", "e f"]]),
        ("a | b || c && d; e & f\ng", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("(cd x && ls); { a; b; }", [["cd", "x"], ["ls"], ["a"], ["b"]]),
        ("! grep x y", [["grep", "x", "y"]]),
        ("ls # rm -rf /\npwd", [["ls"], ["pwd"]]),
        ("ls a#b", [["ls", "a#b"]]),
        ("ls \\\n  -l", [["ls", "-l"]]),
        ("echo '$x `y`' \\$z", [["echo", "$x `y`", "$z"]]),
        ('echo "a\\"b"', [["echo", 'a"b']]),
        ("git show stash@{0} {}", [["git", "show", "stash@{0}", "{}"]]),
        ("echo $? $$", [["echo", "$?", "$$"]]),
        ("", []),
        ("'' x", [["", "x"]]),
    ],
)
def test_what_every_shell_reads_alike_is_known(text: str, wanted: list[list[str]]):
    assert commands(text) == wanted
    assert read_shell(text).doubts == ()


@pytest.mark.attack("A40")
@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("echo $(x)", Doubt.SUBSTITUTION),
        ("echo `x`", Doubt.SUBSTITUTION),
        ('echo "$(x)"', Doubt.SUBSTITUTION),
        ("cat <(x)", Doubt.PROCESS),
        ("tee >(x)", Doubt.PROCESS),
        ("{touch,PWN}", Doubt.BRACES),
        ("echo {1..3}", Doubt.BRACES),
        ("exec {fd}>x", Doubt.BRACES),
        ("touch${IFS}PWN", Doubt.VARIABLE),
        ("$X PWN", Doubt.VARIABLE),
        ('ls "$HOME"', Doubt.VARIABLE),
        ("echo $[1+1]", Doubt.VARIABLE),
        ("$'touch' PWN", Doubt.ESCAPES),
        ('$"touch" PWN', Doubt.ESCAPES),
        ("to\\\nuch PWN", Doubt.SPLIT_WORD),
        ("cat <<EOF\nx\nEOF", Doubt.DOCUMENT),
        ("cat <<<x", Doubt.DOCUMENT),
        ("[[ -v x ]]", Doubt.COMPOUND),
        ("((x=1))", Doubt.COMPOUND),
        ("if a; then b; fi", Doubt.COMPOUND),
        ("for x in a; do b; done", Doubt.COMPOUND),
        ("ls() { x; }", Doubt.DEFINITION),
        ("x=(a b)", Doubt.DEFINITION),
        ("a &> b", Doubt.REDIRECTION),
        ("a >& b", Doubt.REDIRECTION),
        ("a |& b", Doubt.REDIRECTION),
        ("ls 'x", Doubt.UNFINISHED),
        ('ls "x', Doubt.UNFINISHED),
        ("ls \\", Doubt.UNFINISHED),
        ("(ls", Doubt.UNFINISHED),
        ("ls)", Doubt.UNFINISHED),
        ("ls >", Doubt.UNFINISHED),
    ],
)
def test_what_cannot_be_known_is_a_doubt(text: str, doubt: Doubt):
    assert doubt in read_shell(text).doubts


@pytest.mark.attack("A44")
@pytest.mark.parametrize("odd", ["\x1b[2K", "\x9b", "\u202e", "\u200b", "\U000e0072", "l\u0456s", "a\rb", "\u00a0"])
def test_text_that_a_terminal_would_hide_is_a_doubt(odd: str):
    assert Doubt.HIDDEN in read_shell(f"ls {odd}").doubts


@pytest.mark.parametrize(
    "text",
    [
        "echo $(git push)",
        'echo "a $(git push) b"',
        "echo `git push`",
        "echo ${x:-$(git push)}",
        "cat <(git push)",
        "cat <<EOF\n$(git push)\nEOF\n",
        "cat <<'A' <<B\n$(no)\nA\n`git push`\nB\nls",
        "f() { git push; }",
        "if git push; then x; fi",
        "case x in a) git push;; esac",
        "echo `echo \\`git push\\``",
        "(((git push)))",
        "a=$(git push)",
    ],
)
def test_what_stands_inside_of_a_doubt_is_read_all_the_same(text: str):
    assert ["git", "push"] in commands(text)


def test_a_quoted_here_document_is_text_and_what_follows_it_is_read():
    assert commands("cat <<'EOF'\n$(git push)\nEOF\nls") == [["cat"], ["ls"]]
    assert commands("cat <<-E\n\tgit push\n\tE\nls") == [["cat"], ["ls"]]


def test_redirections_and_assignments_stand_beside_the_words():
    (one,) = read_shell("X=1 Y='a b' ls -l > out 2>&1 < in 2>> err").commands
    assert [word.text for word in one.words] == ["ls", "-l"]
    assert [word.text for word in one.assignments] == ["X=1", "Y=a b"]
    assert [(it.target.text, it.writes) for it in one.redirections] == [("out", True), ("in", False), ("err", True)]


@pytest.mark.attack("A43")
@pytest.mark.parametrize("text", ["x" * (LONGEST + 1), "$(" * 500, "(" * 500, "${x:-" * 500, '"$(' * 500])
def test_what_is_too_long_or_too_deep_is_not_readable(text: str):
    assert not read_shell(text).readable


@given(st.text(alphabet=st.sampled_from("ab -'\"\\$`(){}<>|&;\n#=*!~[]0é\u202e\ud800"), max_size=60))
def test_nothing_crashes_the_reader(text: str):
    script = read_shell(text)
    for command in script.commands:
        for word in (*command.words, *command.assignments):
            assert len(word.text) == len(word.bare)
