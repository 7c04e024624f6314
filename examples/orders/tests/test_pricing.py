import pytest

from orders.pricing import Line, discounted, shipping, subtotal


def test_an_empty_order_costs_nothing():
    assert subtotal([]) == 0


def test_single_lines_add_up():
    assert subtotal([Line("tea", 3.5), Line("cup", 8)]) == 11.5


def test_a_line_counts_as_often_as_it_was_ordered():
    assert subtotal([Line("tea", 3, 4), Line("cup", 8, 2)]) == 28
    assert subtotal([Line("spoon", 2, 7)]) == 14


@pytest.mark.parametrize(("amount", "percent", "left"), [(200, 10, 180), (60, 25, 45), (80, 0, 80), (33, 100, 0)])
def test_a_discount_is_in_percent(amount, percent, left):
    assert discounted(amount, percent) == left


@pytest.mark.parametrize(("amount", "weight", "cost"), [(50, 9, 0), (51, 9, 0), (49, 9, 18), (20, 1, 4), (10, 2, 4)])
def test_shipping_is_free_from_fifty_on(amount, weight, cost):
    assert shipping(amount, weight) == cost
