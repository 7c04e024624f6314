"""One notion of a test file for ranking, verification and repair, by name alone."""

from __future__ import annotations

import re

import pytest

from pawl.code.languages import is_test, pattern_of_tests

BELONGS = [
    "test_a.py",
    "pkg/test_a.py",
    "pkg/a_test.py",
    "shop/tests.py",
    "conftest.py",
    "pkg/conftest.py",
    "test.py",
    "src/test.py",
    "tests/values.py",
    "pkg/tests/data.json",
    "Tests/AppTests.swift",
    "pkg/test/values.py",
    "services/api/test/helpers.js",
    "src/test/java/shop/Basket.java",
    "testing/example.py",
    "trio/_tests/tutil.py",
    "spec/values.py",
    "packages/ui/spec/button.ts",
    "web/test.js",
    "web/test-basket.mjs",
    "web/basket-test.js",
    "web/basket_test.ts",
    "web/basket.test.tsx",
    "web/basket.spec.ts",
    "src/setupTests.ts",
    "e2e/login.ts",
    "cypress/support/commands.js",
    "src/__mocks__/fs.js",
    "src/__tests__/util.js",
    "pkg/basket_test.go",
    "pkg/testdata/basket.json",
    "fixtures/basket.yaml",
    "lib/basket_spec.rb",
    "lib/BasketTest.java",
    "lib/BasketIT.kt",
    "src/basket_unittest.cc",
]
DOES_NOT = [
    "src/attest.py",
    "contest.py",
    "latest.js",
    "src/Contest.java",
    "django/test/client.py",
    "numpy/testing/arrays.py",
    "openapi/spec/parser.py",
    "jobs/job_spec.py",
    "shop/select_tests.py",
    "django/core/management/commands/test.py",
    "shop/testing.py",
    "testclient.py",
    "docs/test-plan.md",
    "test_results.txt",
    "setup.py",
    "noxfile.py",
    "vite.config.ts",
    "src/inspect.ts",
    "specs/001-basket/spec.md",
    "specs/042-basket/contracts/api.yaml",
]
"""Each of these, and most of the above, one of four earlier notions held for the opposite of another."""


@pytest.mark.parametrize("path", BELONGS)
def test_what_runs_in_tests_or_is_expected_by_them_belongs_to_them(path: str):
    assert is_test(path)


@pytest.mark.parametrize("path", DOES_NOT)
def test_a_product_with_a_similar_name_does_not(path: str):
    assert not is_test(path)


def test_the_engine_in_the_projects_interpreter_is_given_the_same_notion():
    pattern = re.compile(pattern_of_tests("py").pattern)
    python = [path for path in (*BELONGS, *DOES_NOT) if path.endswith(".py")]
    assert [path for path in python if pattern.match(path)] == [path for path in BELONGS if path.endswith(".py")]
