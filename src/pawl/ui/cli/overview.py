"""The page that `pawl --help` shows. Imports nothing, so that it is there at once."""

COMMANDS = {
    "session": "a session in the terminal; `pawl` alone is the same",
    "run": "run a command on a bench, see what it changed, promote it or not",
    "fix": "repair failing tests and type errors, with no model",
    "verify": "check the project: syntax, types, lint, build, server, tests",
    "dev": "the project's dev server, on a bench: start, status, logs, stop",
    "ask": "ask a model about the workspace; it may only read",
    "do": "carry out a request: on a bench, verified, promoted if you agree",
    "loop": "work until the tests pass or a limit is reached, cheapest first",
    "audit": "what ladders cost and came to, attempt by attempt",
    "approve": "what a run waits for, and your answer to it",
    "locate": "which files and definitions an issue is about, with no model",
    "models": "which models are configured, reachable, priced",
    "policy": "who may do what: tools by mode, stage and role",
    "prompts": "what is sent to models: list, show, check",
    "permissions": "what an agent may do without asking, and what is said of a call",
    "trust": "let this folder's own files configure Pawl, as they are now",
    "memory": "what Pawl remembers of the workspace: list, show, add, forget",
    "promote": "bring a kept entry into the workspace",
    "patch": "apply a patch, or replace a text that occurs exactly once",
    "history": "what was done in this workspace",
    "diff": "what an entry changed, as a git patch",
    "undo": "take an entry back; what you changed since is kept",
    "redo": "bring back what the last undo took",
    "checkpoint": "mark this point of the history",
    "restore": "take back everything since a checkpoint",
    "doctor": "what protection this machine gives, and how to get more",
    "gc": "drop old history and free space",
}

_TOP = """\
usage: pawl [COMMAND] [options]

Changes code on a bench, promotes what should land, and takes anything back.

commands:
"""

_BOTTOM = """
options:
  -h, --help     this page; 'pawl COMMAND --help' is about one command
  -V, --version  the version
  -C DIR         the workspace (default: the repository around you)
  --json         one JSON object on stdout, for programs

try:  pawl run -- make test
      pawl history
      pawl undo

exit codes:
  0 done   1 error   2 wrong words   4 waits for your approval
  41 no or wrong key   42 wrong request
  44 no sandbox here   52 wrong settings   53 no turns or time left
  54 over budget   75 busy, try again   130 interrupted   143 terminated
  'pawl run' passes on the command's own code: 124 when its time was up,
  127 when there is no such command, 128+n when signal n ended it.
"""


def overview() -> str:
    return _TOP + "".join(f"  {name:<11} {text}\n" for name, text in COMMANDS.items()) + _BOTTOM
