"""The header of a model file, and what follows from it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.local_files import SMALL, header_bytes, model_file

from pawl.core.errors import ConfigError, Overloaded, UnknownModel
from pawl.models.local_gguf import LocalModel, read_header, start_of
from pawl.models.providers import LocalSettings, local_settings

pytestmark = pytest.mark.spec("F10")


def test_a_header_tells_what_the_model_reads_and_what_its_cache_takes(tmp_path):
    header = read_header(model_file(tmp_path / "tiny.gguf"))
    assert (header.architecture, header.context) == ("tiny", 4096)
    assert header.cache_bytes(100) == 100 * 2 * 2 * 16 * 2 * 2
    assert header.size == (tmp_path / "tiny.gguf").stat().st_size


def test_the_parts_of_a_split_model_count_together(tmp_path):
    first = model_file(tmp_path / "big-00001-of-00002.gguf")
    (tmp_path / "big-00002-of-00002.gguf").write_bytes(b"GGUF" * 1000)
    (tmp_path / "big-00002-of-00003.gguf").write_bytes(b"of another model")
    assert read_header(first).size == first.stat().st_size + 4000


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello, I am no model", "is not a GGUF file"),
        (b"", "is not a GGUF file"),
        (b"GGUF", "is damaged"),
        (header_bytes(SMALL)[:-3], "is damaged: it ends too early"),
        (header_bytes(SMALL, version=99), "is damaged: version 99"),
        (b"GGUF" + b"\xff" * 200, "is damaged"),
    ],
)
def test_what_is_no_model_is_said_to_be_none(tmp_path, content, says):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(UnknownModel, match=says) as caught:
        read_header(path)
    assert repr(str(path)) in caught.value.message and caught.value.advice


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path):
    with pytest.raises(UnknownModel, match="does not exist"):
        read_header(tmp_path / "none.gguf")
    with pytest.raises(UnknownModel, match="cannot be read"):
        read_header(tmp_path)


@given(data=st.binary(max_size=300), cut=st.integers(0, 300))
def test_no_bytes_break_the_reader(tmp_path_factory, data, cut):
    path = tmp_path_factory.getbasetemp() / "fuzzed.gguf"
    path.write_bytes(header_bytes(SMALL)[:cut] + data)
    with contextlib.suppress(UnknownModel):
        read_header(path)


def test_the_context_is_what_the_model_reads_up_to_a_limit_unless_it_is_set(tmp_path):
    small, large = model_file(tmp_path / "s.gguf"), model_file(tmp_path / "l.gguf", context_length=131072)
    assert LocalModel(small).context == 4096
    assert LocalModel(large).context == 8192
    assert LocalModel(large, LocalSettings(context=20000)).context == 20000


def test_a_model_that_needs_more_memory_than_is_free_is_not_started(tmp_path):
    header = read_header(model_file(tmp_path / "huge.gguf", block_count=10_000_000))
    with pytest.raises(Overloaded, match=r"'huge.gguf' needs about \d+\.\d GB of memory, and \d+\.\d GB are free"):
        start_of(header, LocalSettings(), "token")


def test_start_says_what_the_settings_say(tmp_path):
    header = read_header(model_file(tmp_path / "tiny.gguf"))
    start = start_of(header, LocalSettings(threads=3, kept_prompts=0), "token")
    assert (start.path, start.token, start.context) == (str(tmp_path / "tiny.gguf"), "token", 4096)
    assert (start.threads, start.kept_prompts) == (3, 0)
    assert start_of(header, LocalSettings(), "token").threads >= 1


def test_the_path_of_a_header_is_kept(tmp_path):
    assert read_header(model_file(tmp_path / "tiny.gguf")).path == Path(tmp_path / "tiny.gguf")


def test_settings_come_from_a_table_and_every_mistake_is_named():
    table = {"context": 2048, "threads": 2, "idle_seconds": 10, "kept_prompts": 0}
    assert local_settings(table) == LocalSettings(context=2048, threads=2, idle_seconds=10.0, kept_prompts=0)
    assert local_settings({}) == LocalSettings()
    with pytest.raises(ConfigError) as caught:
        local_settings({"threads": 0, "contxt": 1})
    assert all(part in caught.value.message for part in ("local.threads", "local.contxt", "did you mean 'context'"))
