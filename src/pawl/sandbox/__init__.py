"""Running a command so that only the bench is writable."""

from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.choice import open_sandbox
from pawl.sandbox.surroundings import Surroundings

__all__ = ["CancelToken", "Surroundings", "open_sandbox"]
