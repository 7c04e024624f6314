"""Configuration and wiring: the only place that knows every class."""
