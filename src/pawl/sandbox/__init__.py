"""Running a command so that only the bench is writable."""
