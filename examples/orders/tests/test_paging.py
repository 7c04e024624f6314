from orders.paging import page, page_count

ITEMS = list(range(25))


def test_the_first_page_is_number_one():
    assert page(ITEMS, 1) == list(range(10))


def test_the_last_page_may_be_short():
    assert page(ITEMS, 3) == [20, 21, 22, 23, 24]


def test_the_size_of_a_page_can_be_chosen():
    assert page(ITEMS, 2, size=4) == [4, 5, 6, 7]


def test_pages_are_counted():
    assert [page_count(ITEMS), page_count([]), page_count(ITEMS, 5)] == [3, 1, 5]
