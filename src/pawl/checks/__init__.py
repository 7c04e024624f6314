"""The verifier: which checks a project has, running them, reading their reports."""
