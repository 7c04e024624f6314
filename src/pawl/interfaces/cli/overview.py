"""The page that `pawl --help` shows. Imports nothing, so that it is there at once."""

COMMANDS = {
    "run": "Run a command on a bench; its changes are captured, shown, and promoted if you want them.",
    "patch": "Apply a patch, or replace a text that occurs exactly once.",
    "history": "What was done in this workspace.",
    "diff": "What an entry changed, as a git patch.",
    "undo": "Take an entry back; what you changed since is kept.",
    "redo": "Bring back what the last undo took.",
    "checkpoint": "Mark this point of the history.",
    "restore": "Take back everything since a checkpoint.",
    "doctor": "What protection this machine gives, and how to get more.",
    "gc": "Drop old history and free space.",
}

_TOP = """\
usage: pawl COMMAND [options]

Changes code on a bench, promotes what should land, and takes anything back.

commands:
"""

_BOTTOM = """
options:
  -h, --help     this page; 'pawl COMMAND --help' tells a command's options
  -V, --version  the version

Every command takes -C DIR (the workspace; default: the repository around) and --json.
exit codes: 0 done, 1 error, 2 wrong words, 42 bad input, 44 no sandbox, 52 bad settings, 75 busy: try again,
130 interrupted. 'pawl run' passes on the command's own code (124: time was up; 128+n: ended by signal n).
"""


def overview() -> str:
    return _TOP + "".join(f"  {name:<11} {text}\n" for name, text in COMMANDS.items()) + _BOTTOM
