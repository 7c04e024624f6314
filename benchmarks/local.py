"""A local model through Pawl and through the bare library, turn about in one run: speed, prompt cache, schemas, memory.

usage: python benchmarks/local.py --model FILE.gguf [--threads N] [--rounds N] [--schemas N]

The bare library runs in a process of its own with the same parameters and the same requests, so that both say the same.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pawl.core.dialogue import Answered, Message, ModelResponse, Request, Sampling, StopReason, user
from pawl.models import Model
from pawl.models.local_form import ConstrainedTools
from pawl.models.local_gguf import LocalModel
from pawl.models.providers import LocalSettings

TESTS = Path(__file__).resolve().parent.parent / "tests"
OUTPUT = 64
CONTEXT = 4096
QUESTIONS = (
    "Write a Python function that tells whether a number is prime.",
    "Explain what a hash table is.",
    "Write a SQL query for the ten best customers.",
    "Describe how to reverse a linked list.",
)


def bare(model: str, threads: int) -> None:
    """The other process: answers each line with how long it took and what was said."""
    library = importlib.import_module("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    parameters.verbosity = 1
    started = time.perf_counter()
    server = library.Server(parameters)
    print(json.dumps({"load": time.perf_counter() - started}), flush=True)
    for line in sys.stdin:
        arrived: list[float] = []
        chunks: list[dict] = []

        def hear(chunk: dict | list, arrived: list[float] = arrived, chunks: list[dict] = chunks) -> None:
            arrived.append(time.perf_counter())
            chunks.extend(chunk if isinstance(chunk, list) else [chunk])

        started = time.perf_counter()
        server.handle_chat_completions(json.loads(line), hear)
        seconds = time.perf_counter() - started
        usage = next(chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage"))
        text = "".join(
            choice["delta"].get("content") or ""
            for chunk in chunks
            for choice in chunk["choices"]
            if choice.get("delta")
        )
        print(json.dumps({"seconds": seconds, "tokens": usage["completion_tokens"], "text": text}), flush=True)
    os._exit(0)


@contextmanager
def library_process(model: str, threads: int) -> Iterator[subprocess.Popen]:
    words = [sys.executable, __file__, "--model", model, "--threads", str(threads), "--bare"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def ask_bare(process: subprocess.Popen, question: str, seed: int) -> dict:
    request = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": OUTPUT,
        "temperature": 0.1,
        "top_p": 0.95,
        "seed": seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def ask(model: Model, *messages: Message, system: tuple[str, ...] = (), **changes: object) -> ModelResponse:
    sampling = Sampling(max_output=OUTPUT, seed=1)
    request = Request(model="local", system=system, messages=messages, **{"sampling": sampling, **changes})
    *_, last = model.stream(request)
    assert isinstance(last, Answered)
    return last.answer


def speed(model: Model, process: subprocess.Popen, rounds: int) -> dict:
    """Tokens a second over whole answers, turn about, so that both meet the same load."""
    rates: dict[str, list[float]] = {"pawl": [], "bare": []}
    same = 0
    for number in range(rounds):
        question = f"{QUESTIONS[number % len(QUESTIONS)]} ({number})"
        for who in ("pawl", "bare") if number % 2 else ("bare", "pawl"):
            started = time.perf_counter()
            if who == "pawl":
                answer = ask(model, user(question), sampling=Sampling(max_output=OUTPUT, seed=number))
                rates[who].append(answer.usage.output / (time.perf_counter() - started))
            else:
                said = ask_bare(process, question, number)
                rates[who].append(said["tokens"] / said["seconds"])
        same += answer.text == said["text"]
    medians = {f"{who}_tokens_per_second": round(statistics.median(rate), 2) for who, rate in rates.items()}
    ratios = [ours / theirs for ours, theirs in zip(rates["pawl"], rates["bare"], strict=True)]
    return {**medians, "pawl_to_bare_median": round(statistics.median(ratios), 3), "same_text": f"{same} of {rounds}"}


def cache(model: Model) -> dict:
    """The first token of a long conversation: new, its next turn, and its next turn after another conversation."""
    system = ("You are a careful assistant. " + " ".join(f"Rule {number}: be brief." for number in range(120)),)
    first = ask(model, user("What is 2 + 2?"), system=system)
    second = ask(model, user("What is 2 + 2?"), first.message, user("And 3 + 3?"), system=system)
    ask(model, user("Hello?"), system=("You are a pirate. " * 100,))
    third = ask(model, user("What is 2 + 2?"), first.message, user("And 4 + 4?"), system=system)

    def told(answer: ModelResponse) -> dict:
        return {
            "prompt_tokens": answer.usage.input,
            "read_anew": answer.usage.input - answer.usage.cached,
            "first_token_seconds": round(answer.first_token_seconds or 0.0, 2),
        }

    return {"new": told(first), "next_turn": told(second), "after_another_conversation": told(third)}


def schemas(model: Model, count: int) -> dict:
    sys.path.insert(0, str(TESTS))
    made = importlib.import_module("models.local_schemas")
    ended = valid = tokens = 0
    wrong = []
    started = time.perf_counter()
    for question, schema in made.requests()[:count]:
        answer = ask(model, user(question), answer_schema=schema, sampling=Sampling(max_output=400, seed=1))
        tokens += answer.usage.output
        if answer.stop is not StopReason.END:
            wrong.append(f"{question}: {answer.stop}")
            continue
        ended += 1
        found = made.mistakes(json.loads(answer.text), schema)
        valid += not found
        wrong += [f"{question}: {mistake}" for mistake in found]
    seconds = time.perf_counter() - started
    return {
        "requests": count,
        "ended": ended,
        "valid": valid,
        "wrong": wrong,
        "tokens_per_second": round(tokens / seconds, 2),
    }


def memory(process: int) -> dict:
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    wanted = ("VmRSS:", "VmHWM:", "RssAnon:", "RssFile:")
    return {words[0].rstrip(":"): f"{int(words[1]) / 1024:.0f} MiB" for words in lines if words and words[0] in wanted}


def freed(path: str, settings: LocalSettings) -> dict:
    """How long after the last request the memory is back."""
    model = LocalModel(path, settings)
    ask(model, user("Hi."), sampling=Sampling(max_output=1))
    descriptor = os.pidfd_open(model.process_id)
    started = time.perf_counter()
    select.select([descriptor], [], [], 60)
    os.close(descriptor)
    return {"idle_seconds": settings.idle_seconds, "gone_after": round(time.perf_counter() - started, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--schemas", type=int, default=50)
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        bare(given.model, given.threads)
        return
    settings = LocalSettings(context=CONTEXT, threads=given.threads)
    report: dict[str, object] = {
        "model": Path(given.model).name,
        "threads": given.threads,
        "load_before": os.getloadavg(),
    }
    with LocalModel(given.model, settings) as local, library_process(given.model, given.threads) as process:
        model = ConstrainedTools(local)
        report["bare_load_seconds"] = round(json.loads(process.stdout.readline())["load"], 2)
        first = ask(model, user("Hi."), sampling=Sampling(max_output=1))
        report["pawl_load_and_first_token_seconds"] = round(first.seconds, 2)
        report["speed"] = speed(model, process, given.rounds)
        report["cache"] = cache(model)
        report["schemas"] = schemas(model, given.schemas)
        report["memory"] = memory(local.process_id)
        report["freed"] = freed(given.model, LocalSettings(context=512, threads=given.threads, idle_seconds=1.0))
        process.stdin.close()
    report["load_after"] = os.getloadavg()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
