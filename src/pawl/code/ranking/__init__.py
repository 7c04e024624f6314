"""Ranking the files of an index by how likely they are to change for a query; each signal is a module."""
