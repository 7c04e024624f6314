"""The nodes of the graph: plain functions from a workbench and a place to an outcome, harmless to run again."""
