"""Random inputs that respect what the benchmark programs ask of their callers."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable
from typing import Any

Arguments = tuple[Any, ...]
Maker = Callable[[random.Random], Arguments]


def numbers(rng: random.Random, most: int = 8, low: int = -20, high: int = 20) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(0, most))]


def different(rng: random.Random, most: int = 9) -> list[int]:
    return rng.sample(range(-30, 60), rng.randint(0, most))


def letters(rng: random.Random, most: int = 7, alphabet: str = "abc") -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, most)))


def nested(rng: random.Random, depth: int = 3) -> list[Any]:
    return [
        nested(rng, depth - 1) if depth and rng.random() < 0.4 else rng.randint(0, 9) for _ in range(rng.randint(0, 4))
    ]


def palindrome(rng: random.Random) -> Arguments:
    half = [9] * rng.randint(1, 4) if rng.random() < 0.3 else [rng.randint(1, 9), *numbers(rng, 3, 0, 9)]
    return (half + half[::-1] if rng.random() < 0.5 else half + half[-2::-1],)


def infix(rng: random.Random) -> Arguments:
    tokens: list[Any] = [rng.randint(1, 20)]
    for _ in range(rng.randint(0, 5)):
        tokens += [rng.choice("+-*/"), rng.randint(1, 20)]
    return (tokens,)


def postfix(rng: random.Random) -> Arguments:
    def expression(depth: int) -> list[Any]:
        if depth == 0 or rng.random() < 0.3:
            return [float(rng.randint(1, 9))]
        return [*expression(depth - 1), *expression(depth - 1), rng.choice("+-*/")]

    return (expression(3),)


def ascending_somewhere(rng: random.Random) -> Arguments:
    while True:
        order = rng.sample(range(1, 9), rng.randint(2, 6))
        if any(first < second for first, second in itertools.pairwise(order)):
            return (order,)


def nearly_sorted(rng: random.Random) -> Arguments:
    ordered = sorted(rng.sample(range(-30, 60), rng.randint(1, 9)))
    mixed = ordered[:]
    for place in range(len(mixed) - 1):
        other = rng.randint(place, min(len(mixed) - 1, place + 1))
        mixed[place], mixed[other] = mixed[other], mixed[place]
    reach = max(abs(mixed.index(value) - ordered.index(value)) for value in ordered)
    return mixed, min(len(mixed), max(1, reach))


def buckets(rng: random.Random) -> Arguments:
    size = rng.randint(1, 12)
    return [rng.randint(0, size - 1) for _ in range(rng.randint(0, 12))], size


def ranked(rng: random.Random) -> Arguments:
    values = [*numbers(rng), rng.randint(0, 9)]
    return values, rng.randint(0, len(values) - 1)


def stretch(rng: random.Random) -> Arguments:
    start = rng.randint(0, 5)
    return start, start + rng.randint(0, 6), rng.randint(0, 4)


QUIXBUGS: dict[str, Maker] = {
    "bitcount": lambda rng: (rng.randint(0, 100_000),),
    "bucketsort": buckets,
    "find_first_in_sorted": lambda rng: (sorted(numbers(rng, 9, 0, 8)), rng.randint(-1, 9)),
    "find_in_sorted": lambda rng: (sorted(different(rng)), rng.randint(-30, 60)),
    "flatten": lambda rng: (nested(rng),),
    "gcd": lambda rng: (rng.randint(0, 300), rng.randint(1, 300)),
    "get_factors": lambda rng: (rng.randint(1, 500),),
    "hanoi": lambda rng: (rng.randint(0, 5), *rng.sample([1, 2, 3], 2)),
    "is_valid_parenthesization": lambda rng: (letters(rng, 8, "()"),),
    "kheapsort": nearly_sorted,
    "knapsack": lambda rng: (
        rng.randint(0, 30),
        [(rng.randint(1, 12), rng.randint(1, 30)) for _ in range(rng.randint(0, 6))],
    ),
    "kth": ranked,
    "lcs_length": lambda rng: (letters(rng), letters(rng)),
    "levenshtein": lambda rng: (letters(rng, 5), letters(rng, 5)),
    "lis": lambda rng: (different(rng),),
    "longest_common_subsequence": lambda rng: (letters(rng, 6), letters(rng, 6)),
    "max_sublist_sum": lambda rng: (numbers(rng),),
    "mergesort": lambda rng: (numbers(rng),),
    "next_palindrome": palindrome,
    "next_permutation": ascending_somewhere,
    "pascal": lambda rng: (rng.randint(1, 7),),
    "possible_change": lambda rng: (rng.sample(range(1, 15), rng.randint(1, 4)), rng.randint(0, 30)),
    "powerset": lambda rng: (rng.sample("abcdef", rng.randint(0, 5)),),
    "quicksort": lambda rng: (numbers(rng, 9, 0, 9),),
    "rpn_eval": postfix,
    "shunting_yard": infix,
    "sieve": lambda rng: (rng.randint(1, 60),),
    "sqrt": lambda rng: (float(rng.randint(1, 100)), 10.0 ** -rng.randint(1, 4)),
    "subsequences": stretch,
    "to_base": lambda rng: (rng.randint(1, 5000), rng.randint(2, 36)),
    "wrap": lambda rng: (letters(rng, 40, "ab c d "), rng.randint(1, 12)),
}


def graph(rng: random.Random, node: type) -> list[Any]:
    nodes = [node(number) for number in range(rng.randint(1, 7))]
    for each in nodes:
        each.successors = [other for other in nodes if rng.random() < 0.3]
    return nodes


def chain(rng: random.Random, node: type, *, cyclic: bool) -> Arguments:
    nodes = [node(number) for number in range(rng.randint(1, 7))]
    for first, second in itertools.pairwise(nodes):
        first.successor = second
    nodes[-1].successor = rng.choice(nodes) if cyclic and rng.random() < 0.5 else None
    return (nodes[0],)


def weights(rng: random.Random, names: list[Any]) -> dict[tuple[Any, Any], int]:
    return {(a, b): rng.randint(1, 12) for a in names for b in names if a != b and rng.random() < 0.4}


def connected(rng: random.Random) -> Arguments:
    count = rng.randint(2, 6)
    free = rng.sample(range(1, 60), 40)
    edges = {(rng.randrange(second), second): free.pop() for second in range(1, count)}
    for first in range(count):
        for second in range(first + 1, count):
            if (first, second) not in edges and rng.random() < 0.4:
                edges[first, second] = free.pop()
    return (edges,)


def acyclic(rng: random.Random, node: type) -> Arguments:
    nodes = [node(number) for number in range(rng.randint(1, 6))]
    for each in nodes:
        each.incoming_nodes, each.outgoing_nodes = [], []
    for place, first in enumerate(nodes):
        for second in nodes[place + 1 :]:
            if rng.random() < 0.4:
                first.outgoing_nodes.append(second)
                second.incoming_nodes.append(first)
    return (rng.sample(nodes, len(nodes)),)


def graph_arguments(name: str, rng: random.Random, node: type) -> Arguments:
    """Arguments of the programs that work on graphs and linked nodes."""
    if name in {"breadth_first_search", "depth_first_search"}:
        nodes = graph(rng, node)
        return rng.choice(nodes), rng.choice(nodes)
    if name in {"detect_cycle", "reverse_linked_list"}:
        return chain(rng, node, cyclic=name == "detect_cycle")
    if name == "minimum_spanning_tree":
        return connected(rng)
    if name == "shortest_path_length":
        nodes = graph(rng, node)
        lengths = {(a, b): rng.randint(1, 9) for a in nodes for b in a.successors}
        return lengths, rng.choice(nodes), rng.choice(nodes)
    if name == "shortest_path_lengths":
        count = rng.randint(1, 6)
        return count, weights(rng, list(range(count)))
    if name == "shortest_paths":
        return "A", weights(rng, list("ABCDEF")[: rng.randint(1, 6)])
    return acyclic(rng, node)


def mutated(value: Any, rng: random.Random) -> Any:
    """A value of the same shape that differs a little."""
    match value:
        case bool():
            return rng.random() < 0.5
        case int():
            return rng.choice(
                [
                    value,
                    value + 1,
                    value - 1,
                    value * 2,
                    value + rng.randint(1, 10),
                    rng.randint(0, 12),
                    rng.randint(0, 99),
                ]
            )
        case float():
            return rng.choice([value, value + 1, value - 0.5, value * 1.5, -value, round(value, 1), 0.0])
        case str():
            return _mutated_text(value, rng)
        case list() | tuple():
            return type(value)(_mutated_items(list(value), rng))
        case dict():
            return {
                mutated(key, rng) if rng.random() < 0.3 else key: mutated(item, rng) if rng.random() < 0.4 else item
                for key, item in value.items()
            }
    return value


def _mutated_text(value: str, rng: random.Random) -> str:
    place = rng.randint(0, max(0, len(value) - 1))
    return rng.choice(
        [
            value,
            value[:place] + value[place + 1 :],
            value[:place] + rng.choice(value or "abc") + value[place:],
            "".join(rng.sample(value, len(value))),
            value + value[: rng.randint(0, len(value))],
            value[::-1],
            value.swapcase(),
        ]
    )


def _mutated_items(items: list[Any], rng: random.Random) -> list[Any]:
    if not items:
        return items
    choice = rng.randint(0, 5)
    place = rng.randrange(len(items))
    if choice == 0:
        del items[place]
    elif choice == 1:
        items.insert(place, mutated(rng.choice(items), rng))
    elif choice == 2:
        rng.shuffle(items)
    elif choice == 3:
        items.append(copy.deepcopy(rng.choice(items)))
    else:
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(items))
            items[place] = mutated(items[place], rng)
    return items
