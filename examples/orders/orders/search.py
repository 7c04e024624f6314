"""Finding lines in an order."""

import re


def words(text):
    """The words of a text, in lower case, each once, in the order of their first appearance."""
    found = []
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in found:
            found.append(word)
    return found


def matching(lines, query):
    """The lines whose name holds every word of the query."""
    wanted = set(words(query))
    return [line for line in lines if wanted <= set(words(line.name))]


def most_expensive(lines):
    """The line with the highest price; None when there is none. The first one wins when two cost the same."""
    best = None
    for line in lines:
        if best is None or line.price < best.price:
            best = line
    return best


def by_initial(lines):
    """The names of the lines, grouped by their first letter."""
    groups = defaultdict(list)
    for line in lines:
        groups[line.name[0].upper()].append(line.name)
    return dict(groups)
