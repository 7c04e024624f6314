from orders.pricing import Line
from orders.search import by_initial, matching, most_expensive, words

LINES = [Line("Green tea", 4), Line("Tea cup", 9), Line("Glass", 9), Line("Tray", 7)]


def test_words_are_lower_case_and_unique():
    assert words("Tea, green TEA!") == ["tea", "green"]


def test_every_word_of_the_query_must_match():
    assert matching(LINES, "tea green") == [LINES[0]]


def test_the_most_expensive_line_is_found():
    assert most_expensive(LINES) == LINES[1]
    assert most_expensive([Line("a", 1), Line("b", 5), Line("c", 5), Line("d", 2)]).name == "b"


def test_nothing_is_the_most_expensive_of_nothing():
    assert most_expensive([]) is None


def test_names_are_grouped_by_their_first_letter():
    assert by_initial(LINES) == {"G": ["Green tea", "Glass"], "T": ["Tea cup", "Tray"]}
