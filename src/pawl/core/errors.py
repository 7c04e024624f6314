"""The one error tree. A name says what went wrong; `advice` says what to try next; the exit code goes with the type."""

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
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__).lstrip("_")


def why(error: Exception) -> str:
    """What went wrong in words, without the number and the path of the operating system."""
    return getattr(error, "strerror", None) or str(error)


class UsageError(PawlError):
    """The request itself is wrong."""

    exit_code = 42


class ConfigError(PawlError):
    """A setting is wrong."""

    exit_code = 52


class SandboxUnavailable(PawlError):
    """There is no way to confine a command here."""

    exit_code = 44


class OverlayUnavailable(SandboxUnavailable):
    """The command was not started; a copied bench still works."""


class StoreError(PawlError):
    """The state file cannot be used."""


class StoreTooNew(StoreError):
    """A newer Pawl wrote it."""


class StoreCorrupt(StoreError):
    """It is damaged, and set aside."""


class StoreBusy(StoreError):
    """Another process holds the writer's lock."""

    exit_code = 75


class QueueUnreachable(StoreError):
    """The server that keeps the queue does not answer."""

    exit_code = 75


class UnknownEntry(StoreError):
    """There is no such entry, run or checkpoint."""

    exit_code = 42


class ChangeError(PawlError):
    """The algebra of changes."""


class CannotCompose(ChangeError):
    """The changes are no chain."""


class BadPatch(ChangeError):
    """A patch file that cannot be read."""

    exit_code = 42


class MissingBlob(ChangeError):
    """Content that is no longer stored."""


class Conflicted(PawlError):
    """Carries the conflicts as values; nothing was written."""

    def __init__(self, message: str, conflicts: tuple[object, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.conflicts = conflicts


class NoTests(PawlError):
    """There is nothing to prove a repair with."""

    exit_code = 42


class CannotFix(PawlError):
    """The reflex cannot work here."""


class PromotionFailed(PawlError):
    """The tree could not be written and is as it was."""


class GitFailed(PawlError):
    """Git gives no answer, or no commit was made; the change itself stands."""


class Refused(PawlError):
    """A guardrail says no."""


class PathRefused(Refused):
    """A path that leaves the workspace or is not a plain name."""


class SecretRefused(Refused):
    """A file that holds secrets."""


class ProtectedRefused(Refused):
    """A file that configures or executes; it needs the user's own yes."""


class TooLarge(Refused):
    """A file or change above the preset's limit."""


class ModelError(PawlError):
    """A model could not be asked, or its answer cannot be used."""

    begun = False
    """The model had begun to answer, so that the request is paid for."""


class UnknownModel(ModelError):
    """No such provider, name or file."""

    exit_code = 52


class NotAuthorized(ModelError):
    """The key is missing, wrong or revoked."""

    exit_code = 41


class RateLimited(ModelError):
    """The provider says later."""

    exit_code = 75

    def __init__(self, message: str, wait_seconds: float | None = None, *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.wait_seconds = wait_seconds


class QuotaExhausted(ModelError):
    """The account has nothing left."""

    exit_code = 75


class Overloaded(ModelError):
    """The provider cannot cope."""

    exit_code = 75


class Unreachable(ModelError):
    """There is no connection."""

    exit_code = 75


class ModelTimedOut(ModelError):
    """Connected, but silent or too slow."""

    exit_code = 75


class AnswerInterrupted(ModelError):
    """Nothing of such an answer is executed; the text is kept, marked as interrupted."""

    def __init__(self, message: str, text: str = "", *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.text = text


class AnswerUnusable(ModelError):
    """It is not what the format allows."""


class RequestRejected(ModelError):
    """The provider refuses the request itself."""


class ContextTooLong(RequestRejected):
    """More than the model can read."""


class BrokenHistory(RequestRejected):
    """It does not accept the turns as they are."""


class Diverted(ModelError):
    """It sent Pawl to another host, where the key must not go."""


class SchemaUnmet(ModelError):
    """Carries every mistake as one line with its place, to be sent back to the model."""

    def __init__(self, message: str, mistakes: tuple[str, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.mistakes = mistakes


class ScriptEnded(ModelError):
    """The scripted model has no turn for this request."""

    exit_code = 52


class TaskValidationError(PawlError):
    """A precondition of a task does not hold; `failed` lists them all."""

    exit_code = 42

    def __init__(self, message: str, failed: tuple[str, ...] = (), *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.failed = failed


class BudgetExceeded(PawlError):
    """The next request could cost more than is left."""

    exit_code = 54


class LimitReached(PawlError):
    """Turns or time are used up."""

    exit_code = 53


class Cancelled(PawlError):
    """The user stopped it."""

    exit_code = 130
    begun = False
    """A model had begun to answer, so that the request is paid for."""


class OutOfTime(LimitReached, Cancelled):
    """Stopped when its time was up."""


class HookRefused(PawlError):
    """A hook of the user's says no."""


class PolicyViolation(PawlError):
    """A request that the user's terms or the table forbid."""


class UnregisteredAgent(PawlError):
    """An agent that the context monitor does not know."""


class PromptError(PawlError):
    """A prompt or a role file that cannot be used."""

    exit_code = 52


class ToolError(PawlError):
    """A tool call that failed; every mode of failure is its own type."""


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


class WriteFailed(ToolError):
    """The file reads back otherwise than it was written; it is as it was before."""


class RestoreFailed(ToolError):
    """An edit failed and the file is not as it was either; the workspace is untouched, the bench is to be discarded."""


class UnknownTool(ToolError):
    pass


class BadArguments(ToolError):
    pass


class CommandNotFound(ToolError):
    """No such program, as a shell says it."""

    exit_code = 127


class TimedOut(ToolError):
    pass


class ServerUnavailable(ToolError):
    pass


class PortInUse(ServerUnavailable):
    pass


class BuildFailed(ServerUnavailable):
    """A dev server that the project's own code keeps from starting or from answering."""


class ParseFailed(ToolError):
    pass
