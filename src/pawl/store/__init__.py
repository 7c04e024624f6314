"""SQLite: blobs, events, journal and history."""
