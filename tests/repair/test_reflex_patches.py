"""The reflex finds the patch for different kinds of slips."""

import pytest

SHOP = """
    def cheapest(prices):
        best = prices[0]
        for price in prices:
            if price > best:
                best = price
        return best
"""
TEST_SHOP = """
    from shop import cheapest

    def test_one():
        assert cheapest([3]) == 3

    def test_several():
        assert cheapest([3, 1, 2]) == 1

    def test_last():
        assert cheapest([5, 4, 2]) == 2
"""


@pytest.mark.spec("F1")
def test_a_wrong_comparison_is_turned_round_and_nothing_else_touched(repair):
    repaired = repair({"shop.py": SHOP, "test_shop.py": TEST_SHOP})
    assert repaired.ended.status == "repaired"
    assert "price < best" in repaired.patched()
    (edit,) = repaired.ended.chosen.edits
    assert (edit.end - edit.start, edit.text) == (1, "<")
    assert repaired.ended.chosen.verified
    assert "price > best" in (repaired.root / "shop.py").read_text()
    assert {path.name for path in repaired.root.iterdir()} == {"shop.py", "test_shop.py"}


@pytest.mark.spec("F1")
def test_windows_newlines_and_other_scripts_survive(repair, tmp_path):
    source = 'NAME = "größe"\n\n\ndef double(größe):\n    "Nimmt größe zweimal — ganz."\n    return größe + 2\n'
    (tmp_path / "size.py").write_bytes(source.replace("\n", "\r\n").encode())
    tests = """
        from size import double

        def test_three():
            assert double(3) == 6

        def test_five():
            assert double(5) == 10
    """
    repaired = repair({"test_size.py": tests})
    assert repaired.patched() == source.replace("größe + 2", "größe * 2").replace("\n", "\r\n")


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_missing_statement_is_written_from_the_values_that_the_tests_want(repair):
    source = """
        def joined(words, mark):
            if not words:
                return []
            result = []
            for word in words[:-1]:
                result.append(word)
                result.append(mark)
            return result
    """
    tests = """
        from text import joined

        def test_nothing():
            assert joined([], "-") == []

        def test_two():
            assert joined(["a", "b"], "-") == ["a", "-", "b"]

        def test_three():
            assert joined(["x", "y", "z"], "+") == ["x", "+", "y", "+", "z"]
    """
    repaired = repair({"text.py": source, "test_text.py": tests})
    assert repaired.ended.status == "repaired"
    names: dict = {}
    exec(repaired.patched(), names)
    assert names["joined"](["p", "q"], ",") == ["p", ",", "q"]


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_an_expression_is_grown_that_no_template_has(repair):
    source = """
        def same_letters(first, second):
            return first == second
    """
    tests = """
        import pytest
        from letters import same_letters

        @pytest.mark.parametrize(
            "first, second, same",
            [("ab", "ba", True), ("abc", "cba", True), ("aab", "abb", True), ("ab", "abc", False), ("x", "y", False),
             ("abcd", "dcb", False), ("", "a", False), ("abc", "abd", False), ("eabcdzzzz", "dddzzzzzzzddddabc", False),
             ("eabcd", "aaabbcdee", True), ("bca", "acc", False)],
        )
        def test_letters(first, second, same):
            assert same_letters(first, second) == same
    """
    repaired = repair({"letters.py": source, "test_letters.py": tests})
    names: dict = {}
    exec(repaired.patched(), names)
    assert names["same_letters"]("listen", "silent") is True
    assert names["same_letters"]("stone", "notes!") is False


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_definition_outside_functions_is_repaired(repair):
    source = """
        UNITS = {"second": 1, "minute": 6, "hour": 3600}


        def seconds(text):
            count, unit = text.split()
            return int(count) * UNITS[unit.rstrip("s")]
    """
    tests = """
        from span import seconds

        def test_seconds():
            assert seconds("7 seconds") == 7

        def test_hours():
            assert seconds("2 hours") == 7200

        def test_minutes():
            assert seconds("3 minutes") == 180

        def test_one_minute():
            assert seconds("1 minute") == 60
    """
    repaired = repair({"span.py": source, "test_span.py": tests})
    assert '"minute": 60' in repaired.patched()


@pytest.mark.slow
@pytest.mark.spec("F1")
def test_two_slips_in_one_function_are_found_together(repair):
    source = """
        def prime(number):
            if number < 1:
                return False
            for divisor in range(1, number - 1):
                if number % divisor == 0:
                    return False
            return True
    """
    tests = """
        import pytest
        from numbers_of import prime

        @pytest.mark.parametrize("number", [2, 3, 5, 7, 11, 101])
        def test_prime(number):
            assert prime(number)

        @pytest.mark.parametrize("number", [0, 1, 4, 6, 9, 15, 77])
        def test_not_prime(number):
            assert not prime(number)
    """
    repaired = repair({"numbers_of.py": source, "test_numbers.py": tests}, seconds=100)
    names: dict = {}
    exec(repaired.patched(), names)
    assert [n for n in range(20) if names["prime"](n)] == [2, 3, 5, 7, 11, 13, 17, 19]


def _choice(repair, document, test="test_pay"):
    """The patches for a function of which few examples are known, that several operators meet."""
    source = f'''
        def pay(hours, rate):
            """{document}"""
            return hours
    '''
    tests = f"""
        from pay import pay

        def {test}():
            assert pay(2, 2) == 4
            assert pay(0, 0) == 0
    """
    return repair({"pay.py": source, "test_pay.py": tests})


@pytest.mark.spec("F1")
@pytest.mark.parametrize(
    ("document", "test", "wanted"),
    [
        ("The hours times the rate.", "test_pay", "*"),
        ("The hours and the rate added up.", "test_pay", "+"),
        ("Pay.", "test_product_of_hours_and_rate", "*"),
        ("Pay.", "test_sum_of_hours_and_rate", "+"),
    ],
)
def test_of_patches_that_pass_the_one_that_the_words_ask_for_comes_first(repair, document, test, wanted):
    repaired = _choice(repair, document, test)
    assert {f"hours {wanted} rate", f"rate {wanted} hours"} & {repaired.patched().rpartition("return ")[2].strip()}


@pytest.mark.spec("F1")
def test_ways_to_write_the_same_change_of_a_line_are_one_alternative(repair):
    ended = _choice(repair, "Pay.").ended
    ideas = [(patch.group, patch.line) for patch in ended.patches]
    assert len(ideas) == len(set(ideas)) > 1


@pytest.mark.spec("F1")
def test_two_ways_to_put_one_place_right_are_no_two_opinions(repair):
    """`<=` can be written as a comparison and as a negation; that makes it no likelier than `<`."""
    source = """
        def nearest(numbers, wanted):
            found = None
            for number in numbers:
                if found is None or abs(number - wanted) > abs(found - wanted):
                    found = number
            return found
    """
    tests = """
        from nearest import nearest

        def test_some():
            assert nearest([1, 9, 4], 5) == 4
    """
    assert "abs(number - wanted) < abs" in repair({"nearest.py": source, "test_nearest.py": tests}).patched()


@pytest.mark.spec("F1")
def test_an_inner_function_that_nobody_calls_is_called(repair):
    source = """
        def shared(first, second):
            def is_even(number):
                return number % 2 == 0

            low, high = max(first[0], second[0]), min(first[1], second[1])
            length = high - low
            if length > 0:
                return "even"
            return "no"
    """
    tests = """
        import pytest
        from shared import shared

        @pytest.mark.parametrize(("second", "said"), [((2, 3), "no"), ((2, 4), "even"), ((8, 9), "no"), ((0, 7), "no"),
                                                      ((3, 7), "even"), ((6, 9), "no"), ((1, 9), "even")])
        def test_shared(second, said):
            assert shared((1, 7), second) == said
    """
    assert "is_even(length)" in repair({"shared.py": source, "test_shared.py": tests}).patched()


@pytest.mark.spec("F1")
def test_no_patch_leaves_a_value_that_nobody_uses(repair):
    source = """
        def words(text):
            letters = []
            for letter in text:
                if letter == ",":
                    letters.append(",")
                else:
                    letters.append(letter)
            return "".join(letters).split()
    """
    tests = """
        from words import words

        def test_words():
            assert words("one, two, three") == ["one", "two", "three"]
    """
    repaired = repair({"words.py": source, "test_words.py": tests})
    assert "dropped call" not in {patch.template for patch in repaired.ended.patches}
