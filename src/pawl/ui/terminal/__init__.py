"""The session in a terminal."""
