"""A request carried to its end: the graph of the workflow, wired to the workspace, the models and the store."""
