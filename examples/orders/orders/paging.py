"""Long lists, a page at a time. Pages are counted from 1."""


def page(items, number, size=10):
    """The items on that page."""
    start = number * size
    return items[start : start + size]


def page_count(items, size=10):
    """How many pages there are; an empty list has one, empty page."""
    return max(1, (len(items) + size - 1) // size)
