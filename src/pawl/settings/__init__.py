"""Configuration, trust, permissions and guardrails: what the user and the repository may configure."""
