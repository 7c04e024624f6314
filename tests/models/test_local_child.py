"""The process of a local model: when it starts, what it is told, how it ends and what is said when it fails."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from models.local_files import model_file
from models.local_registry import LocalModels

from pawl.core.dialogue import Answered, ModelResponse, Request, Retrying, TextDelta, user
from pawl.core.errors import Cancelled, ContextTooLong, ModelTimedOut, Overloaded, UnknownModel, Unreachable
from pawl.models.providers import LocalSettings
from pawl.sandbox.cancel import CancelToken

pytestmark = pytest.mark.spec("F10")

STAND_IN = Path(__file__).with_name("local_stand_in.py")
PARENT = """
import sys
from pawl.core.dialogue import Request, user
from pawl.models.local_gguf import LocalModel

model = LocalModel(sys.argv[1])
for event in model.stream(Request(model="local", system=(), messages=(user("hello"),))):
    pass
print(model.process_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library that the child finds: a stand-in."""
    folder = tmp_path / "library"
    folder.mkdir()
    shutil.copy(STAND_IN, folder / "xllamacpp.py")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "tiny.fifo")
    return model_file(tmp_path / "tiny.gguf")


@pytest.fixture
def models() -> Iterator[LocalModels]:
    with LocalModels() as models:
        yield models


def request(said: str = "hello there") -> Request:
    return Request(model="local:tiny.gguf", system=(), messages=(user(said),))


def asked(model, said: str = "hello there") -> ModelResponse:
    *_, last = model.stream(request(said))
    assert isinstance(last, Answered)
    return last.answer


def process_of(models: LocalModels) -> int:
    (process,) = models.running().values()
    return process


@contextmanager
def watched(process: int) -> Iterator[int]:
    descriptor = os.pidfd_open(process)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def has_ended(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 30)[0])


def test_nothing_runs_before_the_first_request(models, file):
    model = models.open(file)
    assert models.running() == {}
    answer = asked(model)
    assert answer.text == "hello there "
    assert (answer.model, answer.cost, answer.attempts) == (f"local:{file}", Decimal(0), 1)
    assert (answer.usage.input, answer.usage.cached, answer.usage.estimated) == (10, 4, False)
    assert list(models.running()) == [f"local:{file}"]


def test_what_is_said_comes_in_pieces(models, file):
    pieces = [event.text for event in models.open(file).stream(request()) if isinstance(event, TextDelta)]
    assert pieces == ["hello ", "there "]


def test_one_process_serves_all_requests_whichever_thread_asks(models, file):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(asked(models.open(file)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process = process_of(models)
    # The process must not end with the thread that asked first.
    assert asked(models.open(file)).served_by == "stand-in"
    assert process_of(models) == process
    assert [answer.text for answer in answers] == ["hello there "] * 3


def test_the_settings_reach_the_library_and_the_server_stays_on_loopback(models, file):
    settings = LocalSettings(context=1234, threads=1, kept_prompts=64 * 1024**2)
    told = json.loads(asked(models.open(file, settings), "settings").text)
    assert told["model"] == {"path": str(file)}
    assert (told["n_ctx"], told["cpuparams"], told["cpuparams_batch"]) == (1234, {"n_threads": 1}, {"n_threads": 1})
    assert (told["hostnames"], told["port"], told["cache_ram_mib"]) == (["127.0.0.1"], 0, 64)
    assert (told["ui"], told["endpoint_slots"], told["offline"]) == (False, False, True)
    (token,) = told["api_keys"]
    assert len(token) >= 32
    assert token not in Path(f"/proc/{process_of(models)}/cmdline").read_text()


def test_a_stranger_on_this_machine_cannot_ask(models, file):
    model = models.opened(file)
    asked(model)
    with model._serving(None) as life:
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
        stranger = urllib.request.Request(f"{life.address}/v1/chat/completions", data=body, method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.raises(urllib.error.HTTPError, match="401") as caught:
            opener.open(stranger)
        caught.value.close()


def test_a_process_that_dies_is_replaced_and_asked_again(models, file):
    model = models.open(file)
    events = list(model.stream(request("die once")))
    assert [type(event) for event in events] == [TextDelta, Retrying, TextDelta, TextDelta, Answered]
    assert "'tiny.gguf' ended while it answered" in events[1].why
    assert (events[-1].answer.text, events[-1].answer.attempts) == ("die once ", 2)


def test_a_process_that_dies_again_is_an_error_with_its_last_words(models, file):
    with pytest.raises(Unreachable, match="my last words"):
        list(models.open(file).stream(request("die")))
    assert models.running() == {}
    assert asked(models.open(file)).text == "hello there "


def test_a_process_that_was_killed_between_requests_is_replaced(models, file):
    model = models.open(file)
    asked(model)
    process = process_of(models)
    with watched(process) as ended:
        os.kill(process, signal.SIGKILL)
        assert has_ended(ended)
    assert asked(model).text == "hello there "
    assert process_of(models) != process


def test_an_idle_process_ends_and_comes_back(models, file):
    model = models.open(file, LocalSettings(idle_seconds=0.3))
    asked(model)
    with watched(process_of(models)) as ended:
        assert has_ended(ended)
    assert asked(model).attempts == 1


def test_a_process_in_use_is_not_idle(models, file):
    model = models.open(file, LocalSettings(idle_seconds=0.0))
    events = model.stream(request("one two"))
    next(events)
    with watched(process_of(models)) as ended:
        assert not select.select([ended], [], [], 0.3)[0]
        assert isinstance(list(events)[-1], Answered)
        assert has_ended(ended)


def test_killing_pawl_leaves_no_process(file):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        with watched(int(parent.stdout.readline())) as ended:
            parent.kill()
            assert has_ended(ended)


def test_killing_pawl_while_a_model_loads_leaves_no_process(file):
    file.with_suffix(".loading").write_text("hang")
    with (
        subprocess.Popen([sys.executable, "-c", PARENT, str(file)], stdin=subprocess.PIPE) as parent,
        watched(int(file.with_suffix(".fifo").read_text())) as ended,
    ):
        parent.kill()
        assert has_ended(ended)


def test_the_user_s_interrupt_is_not_the_child_s(models, file):
    asked(models.open(file))
    assert os.getsid(process_of(models)) != os.getsid(0)


def test_modules_of_the_folder_that_pawl_runs_in_are_not_taken(models, file, tmp_path, monkeypatch):
    for name in ("json", "pawl", "xllamacpp"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the workspace')")
    monkeypatch.chdir(tmp_path)
    assert asked(models.open(file)).text == "hello there "


def test_a_file_that_the_library_refuses_is_an_error_with_the_end_of_what_it_says(models, file):
    file.with_suffix(".loading").write_text("refuse")
    with pytest.raises(UnknownModel, match=r"'tiny\.gguf' cannot be loaded") as caught:
        asked(models.open(file))
    assert "complaint 19999" in caught.value.message and "complaint 100\n" not in caught.value.message
    assert len(caught.value.message) < 2000
    file.with_suffix(".loading").unlink()
    assert asked(models.open(file)).text == "hello there "


@pytest.mark.parametrize(
    ("plan", "error", "says"),
    [
        ("crash", UnknownModel, r"its process ended with -15:(?s:.*)about to crash"),
        ("killed", Overloaded, "was killed while it was loaded"),
    ],
)
def test_a_process_that_ends_while_it_loads_says_how(models, file, plan, error, says):
    file.with_suffix(".loading").write_text(plan)
    with pytest.raises(error, match=says) as caught:
        asked(models.open(file))
    assert caught.value.advice


def test_without_the_extra_the_advice_names_it(models, file, library):
    (library / "xllamacpp.py").write_text("raise ImportError('no library')")
    with pytest.raises(UnknownModel) as caught:
        asked(models.open(file))
    assert caught.value.advice.startswith("install it with: ") and caught.value.advice.endswith("[local]'")
    assert "pawl[" not in caught.value.advice or "/pawl[" in caught.value.advice, "a name on an index is not ours"


def test_loading_does_not_take_for_ever(models, file):
    file.with_suffix(".loading").write_text("hang")
    reader = threading.Thread(target=file.with_suffix(".fifo").read_text)
    reader.start()
    with pytest.raises(ModelTimedOut, match="was not loaded after"):
        asked(models.open(file, LocalSettings(load_seconds=2.0)))
    reader.join()
    assert models.running() == {}


def test_a_command_that_cannot_be_started_is_said(file):
    with LocalModels("/does/not/exist") as models, pytest.raises(Unreachable, match="cannot be started"):
        asked(models.open(file))


def test_cancelling_while_it_loads_is_at_once_and_closing_ends_it(models, file):
    file.with_suffix(".loading").write_text("hang")
    cancel = CancelToken()
    found = []

    def cancel_when_it_loads() -> None:
        found.append(int(file.with_suffix(".fifo").read_text()))
        cancel.request()

    thread = threading.Thread(target=cancel_when_it_loads)
    thread.start()
    with pytest.raises(Cancelled):
        list(models.open(file).stream(request(), cancel=cancel))
    thread.join()
    with watched(found[0]) as ended:
        models.close()
        assert has_ended(ended)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_giving_up_an_answer_ends_it_at_the_server(models, file, how):
    cancel = CancelToken()
    events = models.open(file).stream(request("wait"), cancel=cancel)
    assert next(events) == TextDelta("still")
    if how == "cancel":
        cancel.request()
        with pytest.raises(Cancelled):
            next(events)
    else:
        events.close()
    assert file.with_suffix(".fifo").read_text() == "gone"
    assert asked(models.open(file)).attempts == 1


def test_closing_ends_every_process_and_what_was_opened_says_so(file, tmp_path):
    other = model_file(tmp_path / "other.gguf")
    with LocalModels() as models:
        opened = models.open(file), models.open(other)
        for model in opened:
            asked(model)
        processes = models.running().values()
        assert len(set(processes)) == 2
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    with pytest.raises(Unreachable, match="was closed"):
        asked(opened[0])


def test_too_long_a_request_says_how_much_is_read(models, file):
    with pytest.raises(ContextTooLong, match="loaded to read 100 tokens") as caught:
        asked(models.open(file, LocalSettings(context=100)), "word " * 50)
    assert "up to 4096" in caught.value.advice


def test_what_is_no_model_is_refused_before_anything_starts(models, tmp_path):
    (tmp_path / "text.gguf").write_text("no model")
    for name, says in (("text.gguf", "is not a GGUF file"), ("none.gguf", "does not exist")):
        with pytest.raises(UnknownModel, match=says):
            models.open(tmp_path / name)
    assert models.running() == {}
