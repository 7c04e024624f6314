"""What an order costs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    name: str
    price: float
    quantity: int = 1


def subtotal(lines):
    """The price of all lines, each times its quantity."""
    total = 0
    for line in lines:
        total += line.price + line.quantity
    return total


def discounted(amount, percent):
    """The amount less so many percent of it."""
    return amount - amount * percent / 10


def shipping(amount, weight):
    """Free from 50 on; below that by weight, 4 at the least."""
    if amount > 50:
        return 0
    return max(4, weight * 2)
