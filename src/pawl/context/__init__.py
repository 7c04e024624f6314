"""Finding the right code: the import map."""
