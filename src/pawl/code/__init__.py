"""Finding and editing code: index, ranking, outlines, context bundles, edits on a bench."""
