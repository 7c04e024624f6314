"""The vocabulary of the product: values, protocols and the error tree. Standard library only, no I/O."""

__version__ = "0.1.0"
