"""The page that `pawl --help` shows. Imports nothing, so that it is there at once."""

COMMANDS = {
    "session": "start a session in the terminal; `pawl` alone does the same",
    "setup": "find a model on this machine or by its key, try it, save it",
    "run": "run a command on a bench and choose what to do with its changes",
    "fix": "repair failing tests and type errors without a model",
    "verify": "check the project: syntax, types, lint, build, server, tests",
    "dev": "run the project's dev server on a bench: start, status, logs, stop",
    "ask": "ask a model about the workspace; it can only read",
    "do": "carry out a request; promote the change once verified and approved",
    "spec": "from idea to code: specification, plan, tasks, waves of commits",
    "loop": "work until the tests pass or a limit is reached, cheapest first",
    "audit": "show what each loop cost and achieved, attempt by attempt",
    "queue": "leave requests for workers: add, list, run, pause, cancel, retry",
    "worker": "carry out what is queued, until it is stopped",
    "approve": "show what a run waits for, and answer it",
    "locate": "find the files and definitions an issue is about, with no model",
    "web": "open this workspace in a browser: a page that only you can use",
    "acp": "serve an editor over the Agent Client Protocol, on stdin/stdout",
    "models": "list the configured models: reachable or not, and their prices",
    "policy": "show who may do what: tools by mode, stage and role",
    "prompts": "list, show and check the prompts that models get",
    "skills": "list, show and check the skills that agents may read",
    "agents": "list, show and check the sub-agents that may be sent",
    "mcp": "MCP: servers whose tools agents call, and Pawl for other agents",
    "permissions": "show what an agent may do without asking, and check one call",
    "trust": "let the files of this folder configure Pawl, as they are now",
    "memory": "list, show, add and forget what Pawl remembers of the workspace",
    "requests": "list every request to a model: role, tokens, cost, time",
    "scores": "list how each run was scored, from 1 to 5, and why",
    "promote": "bring a kept entry into the workspace",
    "patch": "apply a patch, or replace a text that occurs exactly once",
    "history": "list what was done in this workspace",
    "diff": "show what an entry changed, as a git patch",
    "undo": "undo an entry; your later edits stay",
    "redo": "redo what the last undo took back",
    "checkpoint": "mark this point of the history",
    "restore": "undo everything since a checkpoint",
    "doctor": "show what protection this machine gives, and how to get more",
    "gc": "drop old history and free disk space",
}

_TOP = """\
usage: pawl [COMMAND] [options]
       pawl "REQUEST"

Pawl changes code on a bench, promotes what you approve, and undoes anything.

commands:
"""

_BOTTOM = """
options:
  -h, --help     show this page; 'pawl COMMAND --help' is about one command
  -V, --version  show the version
  -C DIR         the workspace (default: the current repository)
  --json         write one JSON object to stdout, for programs

try:  pawl setup
      pawl "explain this project"
      pawl run -- make test
      pawl undo

exit codes:
  0 done   1 failed   2 usage error   3 several patches pass: choose one
  4 waits for your approval   5 partly done   6 made but unverified
  41 key missing or refused   42 invalid request   44 no sandbox here
  52 invalid settings   53 no turns or time left   54 over budget
  75 busy, try again   130 interrupted   143 terminated
  'pawl run' returns the command's own exit code: 124 after its time limit,
  127 when the command is not found, 128+n when signal n ended it.
"""


def overview() -> str:
    return _TOP + "".join(f"  {name:<11} {text}\n" for name, text in COMMANDS.items()) + _BOTTOM
