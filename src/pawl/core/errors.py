"""The one error tree. A name says what went wrong; `advice` says what to try next.

PawlError
├── UsageError                 the request itself is wrong                        exit 42
├── ConfigError                a setting is wrong                                 exit 52
├── SandboxUnavailable         no way to confine a command here                   exit 44
│   └── OverlayUnavailable     confinement works, a copy-on-write view does not
├── StoreError                 the state file
│   ├── StoreTooNew, StoreCorrupt  written by a newer Pawl; damaged and set aside
│   ├── StoreBusy              another process holds the writer's lock            exit 75
│   └── UnknownEntry           no such entry, run or checkpoint                   exit 42
├── ChangeError                the algebra of changes
│   ├── CannotCompose, MissingBlob  no chain of changes; content that is no longer stored
│   └── BadPatch               a patch file that cannot be read
├── Conflicted                 what was to change has changed meanwhile
├── PromotionFailed            the tree could not be written and is as it was
├── GitFailed                  git gives no answer, or no commit was made; the change itself stands
├── Refused                    a guardrail says no
│   ├── PathRefused            a path that leaves the workspace or is not a plain name
│   ├── SecretRefused          a file that holds secrets
│   ├── ProtectedRefused       a file that configures or executes; needs the user's own yes
│   └── TooLarge               a file or change above the preset's limit
├── ModelError                 a model could not be asked, or its answer cannot be used
│   ├── UnknownModel           no such provider, name or file                     exit 52
│   ├── NotAuthorized          the key is missing, wrong or revoked               exit 41
│   ├── RateLimited            the provider says later; `wait_seconds` when known exit 75
│   ├── QuotaExhausted, Overloaded  the account has nothing left; the provider cannot cope  exit 75
│   ├── Unreachable, ModelTimedOut  no connection; connected, but silent or too slow    exit 75
│   ├── AnswerInterrupted, AnswerUnusable  it did not end properly (`text` is what came); not what the format allows
│   ├── RequestRejected        the provider refuses the request itself
│   │   ├── ContextTooLong     more than the model can read
│   │   └── BrokenHistory      it does not accept the turns as they are
│   ├── Diverted               it sent Pawl to another host, where the key must not go
│   ├── SchemaUnmet            the answer does not fit its schema; sent back once
│   └── ScriptEnded            the scripted model has no turn for this request    exit 52
├── TaskValidationError        what a task needs does not hold; `failed` lists it all  exit 42
├── BudgetExceeded             the next request could cost more than is left      exit 54
├── LimitReached               turns or time are used up                          exit 53
├── Cancelled                  the user stopped it                                exit 130
├── HookRefused                a hook of the user's says no
├── PolicyViolation            a request that the user's terms or the table forbid
├── UnregisteredAgent          an agent that the context monitor does not know
├── PromptError                a prompt or a role file that cannot be used        exit 52
└── ToolError                  a tool call that failed; every mode of failure is its own type
    ├── NoMatches, NotFound, AlreadyThere, NotAFile, BinaryFile, PermissionDenied, DiskFull
    ├── TextNotFound, AmbiguousMatch, LineMismatch, TooManyEdits, TooManyLines, NothingToDo
    ├── StaleRead, NeverRead, SyntaxBroken, ImportsDropped, BadEncoding, Unjustified, WriteFailed
    ├── RestoreFailed, UnknownTool, BadArguments, TimedOut, ServerUnavailable, ParseFailed
    └── CommandNotFound        no such program, as a shell says it                exit 127
"""

from __future__ import annotations


class PawlError(Exception):
    """Anything Pawl reports to a person: what went wrong, and what to try next."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    @property
    def code(self) -> str:
        """A stable name for programs, derived from the type."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class UsageError(PawlError):
    exit_code = 42


class ConfigError(PawlError):
    exit_code = 52


class SandboxUnavailable(PawlError):
    exit_code = 44


class OverlayUnavailable(SandboxUnavailable):
    """The command was not started; a copied bench still works."""


class StoreError(PawlError):
    pass


class StoreTooNew(StoreError):
    pass


class StoreCorrupt(StoreError):
    pass


class StoreBusy(StoreError):
    exit_code = 75


class UnknownEntry(StoreError):
    exit_code = 42


class ChangeError(PawlError):
    pass


class CannotCompose(ChangeError):
    pass


class BadPatch(ChangeError):
    exit_code = 42


class MissingBlob(ChangeError):
    pass


class Conflicted(PawlError):
    """Carries the conflicts as values; nothing was written."""

    def __init__(self, message: str, conflicts: tuple[object, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.conflicts = conflicts


class NoTests(PawlError):
    exit_code = 42


class CannotFix(PawlError):
    pass


class PromotionFailed(PawlError):
    pass


class GitFailed(PawlError):
    pass


class Refused(PawlError):
    pass


class PathRefused(Refused):
    pass


class SecretRefused(Refused):
    pass


class ProtectedRefused(Refused):
    pass


class TooLarge(Refused):
    pass


class ModelError(PawlError):
    begun = False
    """The model had begun to answer, so that the request is paid for."""


class UnknownModel(ModelError):
    exit_code = 52


class NotAuthorized(ModelError):
    exit_code = 41


class RateLimited(ModelError):
    exit_code = 75

    def __init__(self, message: str, wait_seconds: float | None = None, *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.wait_seconds = wait_seconds


class QuotaExhausted(ModelError):
    exit_code = 75


class Overloaded(ModelError):
    exit_code = 75


class Unreachable(ModelError):
    exit_code = 75


class ModelTimedOut(ModelError):
    exit_code = 75


class AnswerInterrupted(ModelError):
    """Nothing of such an answer is executed; the text is kept, marked as interrupted."""

    def __init__(self, message: str, text: str = "", *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.text = text


class AnswerUnusable(ModelError):
    pass


class RequestRejected(ModelError):
    pass


class ContextTooLong(RequestRejected):
    pass


class BrokenHistory(RequestRejected):
    pass


class Diverted(ModelError):
    pass


class SchemaUnmet(ModelError):
    """Carries every mistake as one line with its place, to be sent back to the model."""

    def __init__(self, message: str, mistakes: tuple[str, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.mistakes = mistakes


class ScriptEnded(ModelError):
    exit_code = 52


class TaskValidationError(PawlError):
    exit_code = 42

    def __init__(self, message: str, failed: tuple[str, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.failed = failed


class BudgetExceeded(PawlError):
    exit_code = 54


class LimitReached(PawlError):
    exit_code = 53


class Cancelled(PawlError):
    exit_code = 130
    begun = False
    """A model had begun to answer, so that the request is paid for."""


class HookRefused(PawlError):
    pass


class PolicyViolation(PawlError):
    pass


class UnregisteredAgent(PawlError):
    pass


class PromptError(PawlError):
    exit_code = 52


class ToolError(PawlError):
    pass


class NoMatches(ToolError):
    pass


class NotFound(ToolError):
    pass


class AlreadyThere(ToolError):
    pass


class NotAFile(ToolError):
    pass


class BinaryFile(ToolError):
    pass


class PermissionDenied(ToolError):
    pass


class DiskFull(ToolError):
    pass


class TextNotFound(ToolError):
    pass


class AmbiguousMatch(ToolError):
    pass


class LineMismatch(ToolError):
    pass


class TooManyEdits(ToolError):
    pass


class TooManyLines(ToolError):
    pass


class NothingToDo(ToolError):
    pass


class StaleRead(ToolError):
    pass


class NeverRead(ToolError):
    pass


class SyntaxBroken(ToolError):
    pass


class ImportsDropped(ToolError):
    pass


class BadEncoding(ToolError):
    pass


class Unjustified(ToolError):
    pass


class WriteFailed(ToolError):
    """What is read back is not what was written; the file is as it was."""


class RestoreFailed(ToolError):
    """An edit failed and the file is not as it was either; the workspace is untouched, the bench is to be discarded."""


class UnknownTool(ToolError):
    pass


class BadArguments(ToolError):
    pass


class CommandNotFound(ToolError):
    exit_code = 127


class TimedOut(ToolError):
    pass


class ServerUnavailable(ToolError):
    pass


class ParseFailed(ToolError):
    pass
