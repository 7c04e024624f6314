"""Plays Pawl: reads an order on its standard input, runs the command in the sandbox, answers in JSON."""

import dataclasses
import json
import os
import sys
import threading

from pawl.core.errors import PawlError
from pawl.core.execution import Confinement, CopyView, Execution, Limits, Network, OverlayView
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.choice import ChosenSandbox, LandlockSandbox
from pawl.sandbox.namespaces import NamespaceSandbox
from pawl.sandbox.process import Programs
from pawl.sandbox.visibility import Surroundings


def make_sandbox(order):
    surroundings = Surroundings(**{**order["surroundings"], "extra_readonly": tuple(order["extra_readonly"])})
    programs = dataclasses.replace(Programs.installed(), **order["programs"])
    match order["kind"]:
        case "namespaces":
            return NamespaceSandbox(surroundings, programs=programs)
        case "landlock":
            return LandlockSandbox(surroundings)
    return ChosenSandbox(surroundings, minimum=Confinement(order["minimum"]), programs=programs)


def execution_of(order):
    fields = dict(order["execution"])
    fields["argv"] = tuple(word.replace("{pid}", str(os.getpid())) for word in fields["argv"])
    fields["network"] = Network(fields.get("network", "off"))
    fields["given"] = fields.get("given", "").encode()
    fields["limits"] = Limits(**fields.get("limits", {}))
    return Execution(**fields)


def run(order):
    view = (OverlayView if "upper" in order["view"] else CopyView)(**order["view"])
    sandbox = make_sandbox(order)
    cancel = CancelToken()
    seen = []

    def on_output(stream, data):
        if order["cancel_on"] and order["cancel_on"].encode() in data:
            cancel.request()
        if order["announce"]:
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        seen.append(stream)

    try:
        completed = sandbox.run(view, execution_of(order), on_output=on_output, cancel=cancel)
    except PawlError as error:
        return {"error": type(error).__name__, "message": error.message, "advice": error.advice}
    answer = {"alive": alive(order["word"]), **dataclasses.asdict(completed)}
    for stream in ("stdout", "stderr"):
        captured = getattr(completed, stream)
        answer[stream] = {"text": captured.text, "total": captured.total, "dropped": captured.dropped}
    return {**answer, "threads": threading.active_count(), "pieces": len(seen), "resident": resident()}


def alive(word):
    """At the very moment of the answer: the processes on whose command line the word stands."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc") if word else ()):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if int(name) != os.getpid() and word.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    orders = json.loads(sys.stdin.readline())
    sys.stdout.write(json.dumps([run(order) for order in orders]) + "\n")
