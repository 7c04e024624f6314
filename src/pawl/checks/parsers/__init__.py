"""One module per test framework: pure functions from what it printed to a report."""
