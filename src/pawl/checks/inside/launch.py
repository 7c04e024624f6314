"""Runs on a bench, in the workspace's interpreter: starts a test runner that nothing of the workspace can shadow.

`python -c THIS MODULES OWN -m MODULE WORD...` does what `python -m MODULE WORD...` does; `-c CODE` and `FILE` are taken
as Python takes them. But where the runner, a library or the standard library imports a module of the standard
library or one of MODULES, it gets the installed one, never one of the workspace. Code of the workspace imports as ever.
OWN are modules that the project itself is, such as `pluggy` in its own repository.
"""

# Before anything is imported that the workspace could hold; `__future__` would be looked for there, too.
import sys

if sys.path[:1] == [""]:
    del sys.path[0]

import os
import runpy
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType

_IMPORTING = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "runpy")


class InstalledFirst:
    """A finder for `sys.meta_path`."""

    def __init__(self, names: "set[str]", workspace: str) -> None:
        self._names = names
        self._installed = list(sys.path)
        self._workspace = workspace + os.sep
        inner = (folder + os.sep for folder in (sys.prefix, sys.base_prefix))
        self._environments = tuple(folder for folder in inner if folder.startswith(self._workspace))

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if path is not None or name not in self._names or self._asked_by_workspace(sys._getframe(1)):
            return None
        found = PathFinder.find_spec(name, self._installed)
        if found is None and PathFinder.find_spec(name) is not None:
            raise ModuleNotFoundError(f"No module named {name!r} outside of the workspace", name=name)
        return found

    def _asked_by_workspace(self, frame: "FrameType | None") -> bool:
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTING:
            frame = frame.f_back
        file = "<" if frame is None else frame.f_code.co_filename
        if not os.path.isabs(file):
            return not file.startswith("<")
        return file.startswith(self._workspace) and not file.startswith(self._environments or "\0")


def main() -> None:
    _, runner, own, first, *words = sys.argv
    listed = (name.partition(".")[0] for name in os.listdir(os.path.dirname(os.__file__)))
    names = set(getattr(sys, "stdlib_module_names", listed)) - set(sys.builtin_module_names) - {"test"}
    here = os.getcwd()
    sys.meta_path.insert(0, InstalledFirst((names | set(runner.split(","))) - set(own.split(",")), here))
    if first == "-m":
        sys.path.insert(0, here)
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        sys.argv = [first, *words]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
