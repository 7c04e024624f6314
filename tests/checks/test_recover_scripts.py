"""The recovery map for TypeScript and JavaScript: what the compiler prints, and the edit that it leads to."""

import pytest

from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import ConfigError
from pawl.repair.recovery import built_in, python_map, recover, with_users
from pawl.repair.sources import symbols_of

pytestmark = pytest.mark.spec("A12")

CART = "export function total(prices: number[]): number {\n  return prices.length;\n}\n"
CASES = {
    "misspelt name": (
        ("TS2552", "Cannot find name 'pricse'. Did you mean 'prices'?", 2, 10),
        {"src/app.ts": "function f(prices: number[]) {\n  return pricse.length;\n}\n"},
        "function f(prices: number[]) {\n  return prices.length;\n}\n",
    ),
    "misspelt property": (
        ("TS2551", "Property 'lenght' does not exist on type 'number[]'. Did you mean 'length'?", 1, 12),
        {"src/app.ts": "const n = x.lenght;\n"},
        "const n = x.length;\n",
    ),
    "misspelt export": (
        ("TS2724", "'\"./cart\"' has no exported member named 'totl'. Did you mean 'total'?", 1, 10),
        {"src/app.ts": 'import { totl } from "./cart";\n', "src/cart.ts": CART},
        'import { total } from "./cart";\n',
    ),
    "misspelt export that is used": (
        ("TS2724", "'\"./cart\"' has no exported member named 'totl'. Did you mean 'total'?", 1, 10),
        {"src/app.ts": 'import { totl } from "./cart";\n\nx.totl("totl", totl([1])); // totl\n', "src/cart.ts": CART},
        'import { total } from "./cart";\n\nx.totl("totl", total([1])); // totl\n',
    ),
    "missing import": (
        ("TS2304", "Cannot find name 'total'.", 3, 1),
        {"src/app.ts": 'import { x } from "./x";\n\ntotal([1]);\n', "src/cart.ts": CART},
        'import { x } from "./x";\nimport { total } from "./cart";\n\ntotal([1]);\n',
    ),
    "missing require": (
        ("ReferenceError", "ReferenceError: total is not defined", 1, 0),
        {"app.js": "console.log(total([1]));\nrequire('fs');\n", "lib/cart.js": "module.exports = { total, other };\n"},
        "console.log(total([1]));\nrequire('fs');\n".replace(
            "console", "const { total } = require('./lib/cart');\nconsole", 1
        ),
    ),
    "misspelt module": (
        ("TS2307", "Cannot find module './crat' or its corresponding type declarations.", 1, 23),
        {"src/app.ts": 'import { total } from "./crat";\n', "src/cart.ts": CART},
        'import { total } from "./cart";\n',
    ),
    "moved module": (
        ("TS2307", "Cannot find module './cart' or its corresponding type declarations.", 1, 23),
        {"src/app.ts": 'import { total } from "./cart";\n', "src/lib/cart.ts": CART},
        'import { total } from "./lib/cart";\n',
    ),
    "type arguments": (
        ("TS2314", "Generic type 'Box<T>' requires 1 type argument(s).", 1, 10),
        {"src/app.ts": "const b: Box = make();\n"},
        "const b: Box<unknown> = make();\n",
    ),
    "missing bracket": (
        ("TS1005", "')' expected.", 1, 14),
        {"src/app.ts": "console.log(1;\n"},
        "console.log(1);\n",
    ),
    "await in a plain function": (
        (
            "TS1308",
            "'await' expressions are only allowed within async functions and at the top levels of modules.",
            2,
            13,
        ),
        {"src/app.ts": "function f() {\n  const x = await g();\n}\n"},
        "async function f() {\n  const x = await g();\n}\n",
    ),
    "await in an arrow": (
        (
            "TS1308",
            "'await' expressions are only allowed within async functions and at the top levels of modules.",
            1,
            23,
        ),
        {"src/app.ts": "const f = (x) => { return await g(x); };\n"},
        "const f = async (x) => { return await g(x); };\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_finding_leads_to_the_edit_that_mends_it(name):
    (code, message, line, column), sources, wanted = CASES[name]
    path = next(iter(sources))
    finding = Diagnostic(tool="tsc", message=message, path=path, line=line, column=column, code=code)
    found = recover(finding, sources, symbols_of({}), built_in("javascript"))
    assert wanted in [one.applied(sources)[path] for one in found if one.edits]


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("Cannot find module 'lodash' or its corresponding type declarations.", "npm install lodash"),
        ("Error: listen EADDRINUSE: address already in use :::3000", "port 3000 is taken"),
        ("node_modules is missing; install it with 'npm ci'", "npm ci"),
    ],
)
def test_what_lies_outside_of_the_code_is_told_and_not_edited(message, word):
    (only,) = recover(
        Diagnostic(tool="tsc", message=message, path="a.ts"), {"a.ts": ""}, symbols_of({}), built_in("javascript")
    )
    assert (only.edits, word in only.why) == ((), True)


def test_a_users_entry_is_added_or_takes_the_place_of_a_known_one():
    own = [
        {
            "id": "mine",
            "patterns": ["^Oops (?P<what>\\w+)"],
            "recovery": "say",
            "advice": "mend {what}",
            "examples": ["Oops x"],
        },
        {"id": "typescript.misspelt", "patterns": ["^never$"], "recovery": "say", "advice": "x", "examples": ["never"]},
    ]
    entries = with_users(built_in("javascript"), own, "[verify]")
    assert [one.id for one in entries[:2]] == ["mine", "typescript.misspelt"]
    assert sum(one.id == "typescript.misspelt" for one in entries) == 1
    with pytest.raises(ConfigError, match="not 'dance'"):
        with_users(python_map(), [{**own[0], "recovery": "dance"}], "[verify]")
    with pytest.raises(ConfigError, match="must be a list"):
        with_users(python_map(), "x", "[verify]")
