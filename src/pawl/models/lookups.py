"""Runs what blocks, which here is the lookup of a server's name, in threads that nobody waits for.

A lookup cannot be stopped and may take half a minute. With the threads that asyncio brings, a user who stops a request
meanwhile would wait for it: when the loop is closed, and once more when the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


class ForgottenThreads(ThreadPoolExecutor):
    """A thread for each piece of work; it ends with the process, whether it is done or not."""

    def submit(self, fn: Callable[Given, Found], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Found]:
        future: Future[Found] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except (OSError, ValueError) as error:
                # A name that cannot be found, or cannot be written down.
                future.set_exception(error)
            finally:
                # What nobody expects shows as a defect of its thread, and the waiting ends.
                if not future.done():
                    future.set_exception(RuntimeError("the lookup broke"))

        threading.Thread(target=work, name="pawl-lookup", daemon=True).start()
        return future
