"""A real Vite, React and TypeScript application, broken in ten ways: verified, repaired where the map can."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request

import pytest

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300)]

REPAIRED = {
    "misspelt property": ("src/cart.ts", "line.price * line", "line.prize * line", "typescript.misspelt"),
    "missing import": ("src/App.tsx", 'import { total } from "./cart";\n', "", "TS2304: import"),
    "misspelt module": ("src/App.tsx", '"./cart"', '"./crat"', "typescript.missing-module"),
    "missing bracket": ("src/cart.ts", "total(lines: Line[])", "total(lines: Line[]", "typescript.expected-token"),
    "misspelt export": ("src/App.tsx", "{ total }", "{ totla as total }", "typescript.misspelt"),
}
FOUND = {
    "wrong type": ("src/cart.ts", "let sum = 0", 'let sum = "0"', "types (tsc)"),
    "missing package": ("src/main.tsx", "react-dom/client", "no-such-package", "types (tsc)"),
    "wrong comparison": ("src/cart.ts", "line.price < best.price", "line.price > best.price", "tests"),
    "broken configuration": ("vite.config.ts", "defineConfig({", "defineConfig({ plugins: nothing,", "build (script)"),
    "broken page": ("index.html", "/src/main.tsx", "/src/nowhere.tsx", "build (script)"),
}


@pytest.mark.spec("A8", "A13")
def test_a_sound_storefront_is_verified_by_all_its_tools(storefront):
    told = storefront().json("verify", "--all")
    standings = {step["step"]: step["standing"] for step in told["steps"]}
    assert {name: standings[name] for name in ("types (tsc)", "build (script)", "server", "tests")} == dict.fromkeys(
        ("types (tsc)", "build (script)", "server", "tests"), "pass"
    )


@pytest.mark.spec("A8", "A12")
@pytest.mark.parametrize("name", REPAIRED)
def test_what_the_map_knows_is_repaired_by_name(storefront, name):
    path, old, new, what = REPAIRED[name]
    pawl = storefront((path, old, new))
    told = pawl.json("fix")
    assert told["outcome"] == "fixed"
    assert what in [repair["what"] for repair in told["repairs"]]
    assert [change["path"] for change in told["changes"]] == [path]
    assert pawl.json("undo")["entry"]
    assert new in (pawl.workspace / path).read_text()


@pytest.mark.spec("A8")
@pytest.mark.parametrize("name", FOUND)
def test_what_is_broken_is_found_by_the_step_that_can_see_it(storefront, name):
    path, old, new, step = FOUND[name]
    told = storefront((path, old, new)).json("verify", code=1)
    failed = [one["step"] for one in told["steps"] if one["standing"] == "fail"]
    assert failed[:1] == [step]


@pytest.mark.spec("A12")
def test_a_name_that_two_modules_export_is_offered_as_rivals_and_a_module_that_passes_it_on_is_none(storefront):
    pawl = storefront(("src/App.tsx", 'import { total } from "./cart";\n', ""))
    count = 'import { Line } from "./cart";\nexport function total(lines: Line[]): number { return lines.length; }\n'
    (pawl.workspace / "src/count.ts").write_text(count)
    (pawl.workspace / "src/index.ts").write_text('export { total } from "./cart";\n')
    told = pawl.json("fix", code=3)
    assert [rival["what"].split()[-1] for rival in told["alternatives"]] == ['"./cart"', '"./count"']
    assert pawl("promote", str(told["alternatives"][1]["entry"])).code == 0
    assert 'from "./count"' in (pawl.workspace / "src/App.tsx").read_text()


@pytest.mark.spec("A12")
def test_missing_packages_are_installed_on_the_bench_and_the_storefront_is_verified(storefront, monkeypatch):
    pawl = storefront()
    shutil.rmtree(pawl.workspace / "node_modules")
    monkeypatch.setenv("HOME", os.path.expanduser("~"))
    assert pawl.json("verify", code=6)["notes"]
    told = pawl.json("verify", "--install", "--test", "npx vitest run")
    assert {step["step"]: step["standing"] for step in told["steps"]}["tests"] == "pass"
    assert not (pawl.workspace / "node_modules").exists()


@pytest.mark.spec("A13")
def test_the_dev_server_of_vite_answers_and_tells_of_edits_over_its_web_socket(storefront):
    # A file of its own, since the others are links to the installation.
    pawl = storefront(("src/cart.ts", "let sum = 0", "let sum  = 0"))
    told = pawl.json("dev", "start")
    try:
        with socket.create_connection(("127.0.0.1", told["port"]), timeout=60) as one, one.makefile("rb") as answers:
            one.sendall(b"GET /?token= HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
            one.sendall(b"Sec-WebSocket-Protocol: vite-hmr\r\nSec-WebSocket-Version: 13\r\n")
            one.sendall(b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            assert b" 101 " in b"".join(iter(answers.readline, b"\r\n"))
            assert b"connected" in answers.read(answers.read(2)[1])
            loaded = urllib.request.urlopen(f"{told['url']}src/cart.ts", timeout=60).read()
            assert b"total" in loaded
            with (pawl.workspace / "src/cart.ts").open("a") as source:
                source.write("\nexport const fresh = 1;\n")
            # Every message is short enough for a length of one byte, or of two after 126.
            size = answers.read(2)[1]
            size = int.from_bytes(answers.read(2)) if size == 126 else size
            assert b'"type":"update"' in answers.read(size)
        assert b"fresh" in urllib.request.urlopen(f"{told['url']}src/cart.ts", timeout=60).read()
    finally:
        pawl("dev", "stop")


@pytest.mark.spec("A8")
def test_vitest_is_asked_for_the_tests_of_what_changed_where_the_suite_is_too_long(storefront, tmp_path, monkeypatch):
    pawl = storefront()
    work = pawl.workspace
    apart = 'import { expect, test } from "vitest";\n\ntest("apart", () => {\n  expect(1 + 1).toBe(2);\n});\n'
    (work / "src/apart.test.ts").write_text(apart)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]
    for words in (["init", "-q"], ["add", "."], commit):
        subprocess.run(["git", "-C", str(work), *words], check=True)
    pawl.json("verify", "--full", "--only", "tests")
    (record,) = (tmp_path / "state/suites").iterdir()
    seen = json.loads(record.read_text())
    (tmp_path / "settings.toml").write_text(f"[verify]\nbudget = {seen['seconds'] / 2}\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    for old, new, code in (
        ("let sum = 0", "let sum = 0.0", 0),
        ("line.price < best.price", "line.price > best.price", 1),
    ):
        text = (work / "src/cart.ts").read_text()
        cart = work / "src/cart.ts"
        cart.unlink()
        cart.write_text(text.replace(old, new))
        said = pawl("verify", "--only", "tests")
        part = re.search(r"(\d+) of (\d+) tests, ", said.out)
        assert said.code == code and part is not None and 0 < int(part[1]) < int(part[2]) == seen["tests"], said
    assert any('"related"' in one.read_text() for one in (tmp_path / "state/verdicts").iterdir())
