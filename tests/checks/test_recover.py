"""Every entry of the recovery map on what the real interpreter says, and the candidates that make it go away."""

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field

import pytest

from pawl.checks.output import Origin
from pawl.checks.report_readers import by_traceback
from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import ConfigError
from pawl.repair.recovery import python_map, recover, with_users
from pawl.repair.sources import close, module_of, symbols_of


@dataclass(frozen=True)
class Case:
    entry: str
    main: str
    others: dict = field(default_factory=dict)
    within: int = 1
    """How many candidates may be tried."""


ASYNC = "import asyncio\n\n\nasync def fetch():\n    return [1, 2]\n\n\n"
SHOP = """
class Basket:
    def __init__(self, price=1):
        self.prices = [price]

    def total(self):
        return sum(self.prices)
"""

CASES = {
    "a standard module": Case("python.undefined-name", "def f():\n    return math.floor(1.5)\n\n\nassert f() == 1\n"),
    "a well-known name": Case("python.undefined-name", '"""Doc."""\n\nimport os\n\nassert Path("a").name == "a"\n'),
    "a name of the project": Case(
        "python.undefined-name",
        "import os\n\nassert Basket().total() == 1\n",
        {"shop/__init__.py": "", "shop/cart.py": SHOP},
    ),
    "a misspelt local name": Case("python.undefined-name", "def f(price):\n    return pirce\n\n\nassert f(1) == 1\n"),
    "a constant of another language": Case("python.undefined-name", "assert true\n"),
    "a method without self before its name": Case(
        "python.undefined-name",
        "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return one() + 1\n\n\n"
        "assert A().two() == 2\n",
    ),
    "a method without the parameter self": Case(
        "python.undefined-name",
        "class A:\n    n = 1\n\n    def one(x=None):\n        return self.n\n\n\nassert A().one() == 1\n",
    ),
    "a misspelt module of the project": Case(
        "python.missing-module", "from shop.cat import Basket\n", {"shop/__init__.py": "", "shop/cart.py": SHOP}
    ),
    "a module without its package": Case(
        "python.missing-module",
        "import cart\n\nassert cart.Basket().total() == 1\n",
        {"shop/__init__.py": "", "shop/cart.py": SHOP},
    ),
    "a misspelt module that is used by its name": Case(
        "python.missing-module", "import basekt\n\nassert basekt.Basket().total() == 1\n", {"basket.py": SHOP}
    ),
    "modules that import each other": Case(
        "python.circular-import",
        "import first\n\nassert first.one() == 1\n",
        {
            "first.py": "import second\n\n\ndef one():\n    return 1\n",
            "second.py": "from first import one\n\n\ndef two():\n    return one() + 1\n",
        },
    ),
    "a misspelt name of a module": Case(
        "python.missing-name-in-module", "from cart import Baskt\n\nBaskt = None\n", {"cart.py": SHOP}
    ),
    "a misspelt name of the standard library": Case(
        "python.missing-name-in-module", "from collections import defaultdit\n"
    ),
    "a name that is in another module": Case(
        "python.missing-name-in-module", "from other import Basket\n", {"cart.py": SHOP, "other.py": "x = 1\n"}
    ),
    "a misspelt method": Case(
        "python.missing-attribute", "from cart import Basket\n\nBasket().totl()\n", {"cart.py": SHOP}
    ),
    "a misspelt function of a module": Case("python.missing-attribute", "import math\n\nassert math.sqr(4) == 2\n"),
    "a misspelt keyword": Case(
        "python.unexpected-keyword", "from cart import Basket\n\nBasket(\n    pirce=3,\n)\n", {"cart.py": SHOP}
    ),
    "a misspelt keyword of a function": Case(
        "python.unexpected-keyword", "def f(price):\n    return price\n\n\npirce = 1\nassert f(pirce=pirce) == 1\n"
    ),
    "a method that takes no self": Case(
        "python.missing-self", "class A:\n    def one():\n        return 1\n\n\nassert A().one() == 1\n"
    ),
    "a method with parameters that takes no self": Case(
        "python.missing-self", "class A:\n    def same(x):\n        return x\n\n\nassert A().same(2) == 2\n"
    ),
    "a method called on the class": Case(
        "python.called-on-class", "from cart import Basket\n\nBasket.total()\n", {"cart.py": SHOP}
    ),
    "a coroutine that is indexed": Case(
        "python.missing-await", ASYNC + "async def run():\n    return fetch()[0]\n\n\nassert asyncio.run(run()) == 1\n"
    ),
    "a coroutine in a sum": Case(
        "python.missing-await", ASYNC + "async def run():\n    return fetch() + [3]\n\n\nassert asyncio.run(run())\n"
    ),
    "a coroutine in a loop": Case(
        "python.missing-await",
        ASYNC + "async def run():\n    return [x for x in fetch()]\n\n\nassert asyncio.run(run()) == [1, 2]\n",
    ),
    "await in a plain function": Case(
        "python.await-outside-async",
        ASYNC + "def run():\n    return await fetch()\n\n\nassert asyncio.run(run()) == [1, 2]\n",
    ),
    "a global that is counted up": Case(
        "python.unbound-local",
        'n = 0\n\n\ndef f():\n    """Counts."""\n    n += 1\n    return n\n\n\nassert f() == 1\n',
    ),
    "an outer variable that is counted up": Case(
        "python.unbound-local",
        "def outer():\n    n = 0\n\n    def f():\n        n += 1\n        return n\n\n    return f()\n\n\n"
        "assert outer() == 1\n",
    ),
    "an unexpected indent": Case("python.indentation", "x = 1\n  y = 2\nassert x + y == 3\n"),
    "a missing indent": Case("python.indentation", "def f():\nreturn 1\n\n\nassert f() == 1\n"),
    "an indent between two depths": Case(
        "python.indentation",
        "def f():\n    if True:\n        x = 1\n      y = 2\n    return x + y\n\n\nassert f() == 3\n",
    ),
    "a body that is not indented": Case("python.indentation", "def f(x):\ny = x + 1\nreturn y\n\n\nassert f(1) == 2\n"),
    "tabs between spaces": Case("python.tabs", "def f():\n    x = 1\n\treturn x\n\n\nassert f() == 1\n"),
    "a missing colon": Case("python.missing-colon", "def f()  # a comment\n    return 1\n\n\nassert f() == 1\n"),
    "else if": Case("python.missing-colon", "if 0:\n    x = 1\nelse if 1:\n    x = 2\nassert x == 2\n"),
    "a bracket that is not closed": Case("python.brackets", "x = sum((1, 2)\nassert x == 3\n"),
    "a bracket that is not closed before a colon": Case(
        "python.brackets python.invalid-syntax", "if (1 + 1:\n    x = 3\nassert x == 3\n"
    ),
    "a bracket that is not closed before an arrow": Case(
        "python.invalid-syntax", "def f(x: list[int] -> int:\n    return x[0]\n\n\nassert f([3]) == 3\n", within=3
    ),
    "a bracket too many": Case("python.brackets", "x = (1 + 2))\nassert x == 3\n"),
    "a bracket of the wrong kind": Case("python.brackets", "x = [1, 2)\nassert x == [1, 2]\n"),
    "a string that is not closed": Case("python.unterminated-string", "x = len('abc)\nassert x == 3\n"),
    "one equals sign": Case("python.assignment-for-comparison", "x = 1\nif x = 1:\n    x = 2\nassert x == 2\n"),
    "a missing comma": Case("python.missing-comma", "x = [1, 2 3]\nassert x == [1, 2, 3]\n"),
    "a missing comma at the end of a line": Case(
        "python.missing-comma", "x = {\n    'a': 1\n    'b': 2,\n}\nassert x['b'] == 2\n"
    ),
    "a print statement": Case("python.print-statement", "if 1:\n    print 'a', 1  # both\n"),
    "exceptions without parentheses": Case(
        "python.except-without-parentheses", "try:\n    int('x')\nexcept ValueError, KeyError:\n    pass\n"
    ),
    "typographic quotes": Case("python.odd-character", "x = “abc”\nassert x == 'abc'\n"),
    "a blank that is none": Case("python.odd-character", "x =\u00a01\nassert x == 1\n"),
    "a late future import": Case(
        "python.late-future-import", '"""Doc."""\nimport os\nfrom __future__ import annotations\n'
    ),
    "two ampersands": Case("python.invalid-syntax", "x = 1\nif x && x:\n    x = 2\nassert x == 2\n"),
    "plus plus": Case("python.invalid-syntax", "x = 1\nx++\nassert x == 2\n"),
    "an exclamation mark": Case("python.invalid-syntax", "x = 0\nif !x:\n    x = 2\nassert x == 2\n"),
}


def run(root):
    return subprocess.run([sys.executable, "main.py"], cwd=root, capture_output=True, text=True)


def put(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def finding_of(root, output):
    (finding,) = by_traceback("python", output, Origin(workspace=str(root))).findings
    return finding


@pytest.mark.spec("A12")
@pytest.mark.parametrize("name", CASES)
def test_a_candidate_makes_the_real_error_go_away(tmp_path, name):
    case = CASES[name]
    sources = {"main.py": case.main, **case.others}
    put(tmp_path, sources)
    before = run(tmp_path)
    if before.returncode == 0:
        pytest.skip("this Python accepts it")
    finding = finding_of(tmp_path, before.stderr)
    candidates = [candidate for candidate in recover(finding, sources) if candidate.edits]
    assert candidates, finding
    assert candidates[0].recovery in case.entry.split()
    for candidate in candidates[: case.within]:
        put(tmp_path, {**sources, **candidate.applied(sources)})
        after = run(tmp_path)
        if after.returncode == 0:
            return
    pytest.fail(f"{after.stderr}\n{[candidate.why for candidate in candidates]}")


@pytest.mark.spec("A12")
def test_every_entry_of_the_map_has_a_case():
    advice_only = {
        "python.relative-import",
        "python.default-before-required",
        "python.no-service",
        "python.no-network",
        "python.missing-fixture",
        "python.async-tests",
    }
    assert {entry for case in CASES.values() for entry in case.entry.split()} | advice_only == {
        entry.id for entry in python_map()
    }


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("module", "package"),
    [("yaml", "PyYAML"), ("cv2", "opencv-python"), ("sklearn.svm", "scikit-learn"), ("lxml.etree", "lxml")],
)
def test_a_missing_module_names_its_package(module, package):
    finding = Diagnostic(tool="python", message=f"ModuleNotFoundError: No module named '{module}'", path="a.py", line=1)
    candidates = recover(finding, {"a.py": f"import {module}\n"})
    advice = [candidate.why for candidate in candidates if not candidate.edits]
    assert len(advice) == 1
    assert f"add {package}" in advice[0]


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("line", "others", "declared"),
    [
        ("import cv2", {}, ()),
        ("import ujson", {"json2.py": "x = 1\n", "jsons.py": "x = 1\n", "ujsn.py": "x = 1\n"}, ()),
        ("import ledgr", {"ledger.py": "x = 1\n"}, ("Ledgr",)),
        ("import led_gr", {"ledger.py": "x = 1\n", "led_gar.py": "x = 1\n"}, ("led-gr",)),
        ("import ledgr", {"ledger.py": "y = 1\n"}, ()),
        ("import ledgr", {"ledger.py": "x = 1\n", "other.py": "import ledgr\n"}, ()),
        ("import ldgr", {"ledger.py": "x = 1\n"}, ()),
        ("import jsno", {}, ()),
        ("import redis", {"stores/redis.py": "x = 1\n"}, ()),
    ],
)
def test_a_package_is_never_taken_for_a_misspelt_module(line, others, declared):
    module = line.split()[1]
    sources = {"a.py": f"{line}\n\nprint({module}.x)\n", **others}
    finding = Diagnostic(tool="python", message=f"ModuleNotFoundError: No module named '{module}'", path="a.py", line=1)
    (candidate,) = recover(finding, sources, declared=declared)
    assert candidate.edits == ()
    assert re.search(rf"the module {module} is not installed|there is no module {module}\b", candidate.why)


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("main", "said"),
    [
        ("from . import x\n", "run it as a module of its package"),
        ("def f(a=1, b): pass\n", "reorder them"),
        (
            "import socket\n\nwith socket.socket() as one:\n    one.bind(('127.0.0.1', 0))\n"
            "    place = one.getsockname()\nsocket.create_connection(place)\n",
            "a service does not answer",
        ),
        ("import socket\n\nsocket.getaddrinfo('x', 1, flags=socket.AI_NUMERICHOST)\n", "reach for the network"),
    ],
)
def test_what_cannot_be_edited_is_advice(tmp_path, main, said):
    put(tmp_path, {"main.py": main})
    finding = finding_of(tmp_path, run(tmp_path).stderr)
    candidates = recover(finding, {"main.py": main})
    assert [candidate.edits for candidate in candidates] == [()]
    assert said in candidates[0].why


@pytest.mark.spec("A12")
def test_what_pytest_lacks_is_advice(tmp_path):
    put(tmp_path, {"test_a.py": "def test_one(nowhere):\n    pass\n\n\nasync def test_two():\n    pass\n"})
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:anyio", "-p", "no:asyncio", "test_a.py"]
    printed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    told = [
        candidate.recovery
        for line in printed.splitlines()
        for candidate in recover(Diagnostic(tool="pytest", message=line.removeprefix("E").strip()), {})
    ]
    assert set(told) == {"python.missing-fixture", "python.async-tests"}


@pytest.mark.spec("A12")
def test_a_coroutine_that_was_never_awaited_is_awaited(tmp_path):
    main = ASYNC + "async def run():\n    fetch()\n    return 1\n\n\nasyncio.run(run())\n"
    put(tmp_path, {"main.py": main})
    said = next(line for line in run(tmp_path).stderr.splitlines() if "never awaited" in line)
    finding = Diagnostic(tool="python", message=said, path="main.py", line=9)
    (candidate,) = recover(finding, {"main.py": main})
    assert "    await fetch()\n" in candidate.applied({"main.py": main})["main.py"]


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    "message",
    [
        "Undefined name `math`",
        "Name `math` used when not defined",
        'Name "math" is not defined',
        '"math" is not defined',
    ],
)
def test_the_messages_of_linters_and_checkers_lead_to_the_same_import(message):
    finding = Diagnostic(tool="ruff", message=message, path="a.py", line=3, code="F821")
    sources = {"a.py": "import os\n\nprint(math.pi)\n"}
    assert recover(finding, sources)[0].applied(sources)["a.py"] == "import math\nimport os\n\nprint(math.pi)\n"


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = Path()\n", "from pathlib import Path\n\nx = Path()\n"),
        ("#!/usr/bin/env python3\nx = Path()\n", "#!/usr/bin/env python3\n\nfrom pathlib import Path\n\nx = Path()\n"),
        ('"""Doc."""\n\nx = Path()\n', '"""Doc."""\n\nfrom pathlib import Path\n\nx = Path()\n'),
        (
            "from __future__ import annotations\n\nimport os\nimport sys\n\nimport rich\n\nx = Path()\n",
            "from __future__ import annotations\n\nimport os\nimport sys\nfrom pathlib import Path\n\n"
            "import rich\n\nx = Path()\n",
        ),
    ],
)
def test_an_import_is_put_where_imports_stand(before, after):
    finding = Diagnostic(tool="ruff", message="Undefined name `Path`", path="a.py", line=before.count("\n"))
    assert recover(finding, {"a.py": before})[0].applied({"a.py": before})["a.py"] == after


@pytest.mark.spec("A12")
def test_a_name_in_a_string_or_comment_stays_as_it_is():
    text = "def f(price):\n    return pirce, 'pirce'  # pirce\n"
    finding = Diagnostic(tool="python", message="NameError: name 'pirce' is not defined", path="a.py", line=2)
    candidate = recover(finding, {"a.py": text})[0]
    assert candidate.applied({"a.py": text})["a.py"] == "def f(price):\n    return price, 'pirce'  # pirce\n"


@pytest.mark.spec("A12")
def test_a_finding_in_a_file_that_is_not_known_has_no_edits():
    finding = Diagnostic(tool="python", message="NameError: name 'math' is not defined", path="gone.py", line=2)
    assert recover(finding, {}) == ()


@pytest.mark.spec("A12")
def test_a_message_that_is_not_in_the_map_has_no_candidates():
    assert (
        recover(Diagnostic(tool="python", message="ZeroDivisionError: division by zero", path="a.py"), {"a.py": ""})
        == ()
    )


@pytest.mark.spec("A12")
def test_no_candidate_breaks_a_file_that_parses():
    text = "def f():\n    return missing\n"
    for entry in python_map():
        for example in entry.examples:
            for candidate in recover(Diagnostic(tool="python", message=example, path="a.py", line=2), {"a.py": text}):
                for changed in candidate.applied({"a.py": text}).values():
                    compile(changed, "a.py", "exec")


USERS = """
[[recovery]]
id = "mine.service"
patterns = ['ConnectionRefusedError: .* port (?P<port>[0-9]+)']
recovery = "say"
advice = "start the service on port {port}"
examples = ["ConnectionRefusedError: nobody listens on port 8080"]

[[recovery]]
id = "python.undefined-name"
patterns = ["NameError: name '(?P<name>[a-z]+)'"]
recovery = "say"
advice = "never guess {name}"
examples = ["NameError: name 'x' is not defined"]
"""


@pytest.mark.spec("A12")
def test_users_add_entries_and_replace_known_ones():
    entries = with_users(python_map(), tomllib.loads(USERS)["recovery"], "recovery.toml")
    refused = Diagnostic(tool="python", message="ConnectionRefusedError: nobody listens on port 5432")
    assert [candidate.why for candidate in recover(refused, {}, entries=entries)] == ["start the service on port 5432"]
    unknown = Diagnostic(tool="python", message="NameError: name 'math' is not defined", path="a.py", line=1)
    assert [candidate.why for candidate in recover(unknown, {"a.py": "math\n"}, entries=entries)] == [
        "never guess math"
    ]


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("start the service on port {port}", "start {service}"), "'service', which no pattern does"),
        (("port 8080", "8080"), "no pattern that finds its example"),
        (('"say"', '"explode"'), "not 'explode'"),
        (("(?P<port>[0-9]+)", "(?P<port>[0-9]+"), "is not a regular expression"),
        (("patterns = ['Conn", "patterns = ['never', 'Conn"), "no example that shows its pattern 'never'"),
        (('id = "python.undefined-name"', 'id = "mine.service"'), "used twice"),
        (('advice = "start the service on port {port}"', ""), "nothing to say"),
        (('examples = ["ConnectionRefusedError: nobody listens on port 8080"]', ""), "examples is missing"),
    ],
)
def test_an_entry_that_does_not_prove_itself_is_refused(change, said):
    text = USERS.replace(*change, 1)
    assert text != USERS
    with pytest.raises(ConfigError) as refused:
        with_users(python_map(), tomllib.loads(text)["recovery"], "recovery.toml")
    assert said in refused.value.message
    assert "'recovery.toml'" in refused.value.message
    assert refused.value.advice


@pytest.mark.spec("A12")
def test_symbols_know_modules_classes_attributes_and_parameters():
    symbols = symbols_of(
        {"src/shop/cart.py": SHOP, "broken.py": "def f(:", "lib/x/__init__.py": "async def go(a, *, b): ...\n"}
    )
    assert {"shop", "shop.cart", "broken", "x"} <= symbols.modules
    assert set(symbols.attributes("Basket")) == {"__init__", "prices", "total"}
    assert symbols.functions("__init__", "Basket")[0].parameters == ("self", "price")
    assert [(known.kind, known.parameters) for known in symbols.importable("go")] == [("async function", ("a", "b"))]
    assert module_of("src/shop/__init__.py") == "shop"


@pytest.mark.spec("A12")
def test_close_names_put_a_difference_of_case_first():
    assert close("Total", ["totals", "total", "other"])[0] == "total"
    assert close("x", ["entirely", "different"]) == []
