"""The user's folder: paths, benches, edits, promotion, history."""
