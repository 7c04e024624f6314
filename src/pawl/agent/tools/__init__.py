"""Tools that a model may call: typed input, typed output, named failures."""
