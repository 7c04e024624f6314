"""Real FastAPI and Flask applications and a Go module, sound and broken: the step that can see it says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ui.cli.console import Pawl

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("A8", "A13")]
HERE = Path(__file__).parent

FLASK = """from flask import Flask, jsonify

from prices import total

app = Flask(__name__)


@app.get("/")
def home():
    return jsonify(total=total([1, 2]))
"""
FASTAPI = """from fastapi import FastAPI

from prices import total

app = FastAPI()


@app.get("/")
def home() -> dict[str, int]:
    return {"total": total([1, 2])}
"""
SHARED = {
    "prices.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "test_prices.py": "import unittest\n\nfrom prices import total\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    "        self.assertEqual(total([7]), 7)\n        self.assertEqual(total([]), 0)\n",
    ".gitignore": ".venv\n",
}
APPS = {
    "flask": {**SHARED, "requirements.txt": "flask\n", "shop.py": FLASK},
    "uvicorn": {**SHARED, "requirements.txt": "fastapi\nuvicorn\n", "shop.py": FASTAPI},
}
BROKEN = {
    "syntax": ("prices.py", "list[int])", "list[int]", "syntax"),
    "undefined name": ("prices.py", "sum(prices)", "sun(prices)", "types"),
    "missing import": ("shop.py", "from prices import total\n", "", "types"),
    "misspelt module": ("shop.py", "from prices", "from pricse", "types"),
    "wrong type": ("prices.py", "return sum(prices)", "return str(sum(prices))", "types"),
    "wrong result": ("prices.py", "sum(prices)", "sum(prices) + 1", "tests"),
    "decorator of nothing": ("shop.py", "def home()", "raise RuntimeError('no database')\n\n\ndef home()", "syntax"),
    "dies when imported": ("prices.py", "def total", "OPEN = open('/nowhere/at/all')\n\n\ndef total", "server"),
    "broken page": ("shop.py", "total([1, 2])", "total([1, 2]) // (len([]))", "server"),
    "ends at once": ("shop.py", "app = ", "import sys\n\nsys.exit('no licence')\napp = ", "server"),
}
REPAIRED = {
    "syntax": (*BROKEN["syntax"][:3], "python.invalid-syntax"),
    "undefined name": (*BROKEN["undefined name"][:3], "python.undefined-name"),
    "missing import": (*BROKEN["missing import"][:3], "python.undefined-name"),
    "misspelt module": (*BROKEN["misspelt module"][:3], "python.missing-module"),
    "misspelt import": ("shop.py", "import total", "import totl as total", "python.missing-name-in-module"),
    "misspelt keyword": ("shop.py", "total([1, 2])", "total(price=[1, 2])", "python.unexpected-keyword"),
    "unexpected indent": ("shop.py", "app = ", "  app = ", "python.indentation"),
    "misspelt attribute": ("prices.py", "sum(prices)", "sum(prices.coppy())", "python.missing-attribute"),
    "wrong result": (*BROKEN["wrong result"][:3], "off by one"),
    "well-known name": ("prices.py", "sum(prices)", "reduce(int.__add__, prices, 0)", "python.undefined-name"),
}


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the servers, at pinned versions."""
    root = tmp_path_factory.mktemp("servers") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    words = [str(root / "bin" / "pip"), "install", "-q", "-r", str(HERE / "python-requirements.txt")]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "HOME": os.path.expanduser("~")})  # noqa: TID251
    return root


@pytest.fixture
def app(packages: Path, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pawl]:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("VIRTUAL_ENV", str(packages))
    monkeypatch.setenv("PATH", f"{packages}/bin:/usr/local/bin:/usr/bin:/bin")

    def make(files: dict[str, str]) -> Pawl:
        root = tmp_path / "app"
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return Pawl(root)

    return make


@pytest.mark.parametrize("name", APPS)
def test_a_sound_application_answers(app, name):
    told = app(APPS[name]).json("verify", "--all")
    steps = {step["step"]: step for step in told["steps"]}
    assert [steps[one]["standing"] for one in ("syntax", "types", "server", "tests")] == ["pass"] * 4
    assert steps["server"]["reason"].startswith(f"{name} answers on port ")


@pytest.mark.parametrize("way", BROKEN)
@pytest.mark.parametrize("name", APPS)
def test_a_broken_application_is_found_by_the_first_step_that_can_see_it(app, name, way):
    path, old, new, step = BROKEN[way]
    assert old in APPS[name][path]
    files = {**APPS[name], path: APPS[name][path].replace(old, new, 1)}
    told = app(files).json("verify", code=1)
    assert [one["step"] for one in told["steps"] if one["standing"] == "fail"][:1] == [step]


@pytest.mark.spec("A12")
@pytest.mark.parametrize("way", REPAIRED)
@pytest.mark.parametrize("name", APPS)
def test_what_the_map_or_the_search_knows_is_repaired_by_name_and_the_server_answers_again(app, name, way):
    path, old, new, what = REPAIRED[way]
    assert old in APPS[name][path]
    pawl = app({**APPS[name], path: APPS[name][path].replace(old, new, 1)})
    told = pawl.json("fix")
    assert (told["outcome"], [one["what"] for one in told["repairs"]]) == ("fixed", [what])
    assert [change["path"] for change in told["changes"]] == [path]
    assert pawl.json("verify")["accepted"]


GO = {
    "go.mod": "module shop\n\ngo 1.18\n",
    "shop.go": "package shop\n\n// Total adds prices.\nfunc Total(prices []int) int {\n\tsum := 0\n"
    "\tfor _, price := range prices {\n\t\tsum += price\n\t}\n\treturn sum\n}\n",
    "shop_test.go": 'package shop\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n'
    '\tif got := Total([]int{1, 2}); got != 3 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n',
}
GO_BROKEN = {
    "undefined": ("sum += price", "sum += prize", "lint (go vet)"),
    "wrong type": ("sum := 0", 'sum := "0"', "lint (go vet)"),
    "syntax": ("return sum\n}", "return sum\n", "lint (go vet)"),
    "unused": ("sum := 0", "sum, more := 0, 1", "lint (go vet)"),
    "missing return": ("\treturn sum\n", "", "lint (go vet)"),
    "wrong result": ("sum += price", "sum -= price", "tests"),
    "wrong start": ("sum := 0", "sum := 1", "tests"),
    "unknown import": ("package shop\n", 'package shop\n\nimport "nowhere/at/all"\n', "lint (go vet)"),
    "two packages": ("package shop\n", "package other\n", "lint (go vet)"),
    "panics": ("sum := 0", 'sum := 0\n\tif len(prices) > 1 {\n\t\tpanic("many")\n\t}', "tests"),
}


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
@pytest.mark.parametrize("way", GO_BROKEN)
def test_a_broken_go_module_is_found_by_the_first_step_that_can_see_it(app, way):
    old, new, step = GO_BROKEN[way]
    files = {**GO, "shop.go": GO["shop.go"].replace(old, new, 1)}
    assert files != GO
    told = app(files).json("verify", code=1)
    failed = [one for one in told["steps"] if one["standing"] == "fail"]
    assert [one["step"] for one in failed][:1] == [step]
    assert failed[0]["findings"]
