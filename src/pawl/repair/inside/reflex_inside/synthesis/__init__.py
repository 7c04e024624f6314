"""Expressions and statements grown from the values that the tests were seen to produce."""
