"""The part of the reflex that runs in the workspace's interpreter: standard library and the workspace's own pytest."""
