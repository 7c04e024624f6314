"""The reflex: failing tests in, the smallest patch that passes them out, with no model and no network."""
