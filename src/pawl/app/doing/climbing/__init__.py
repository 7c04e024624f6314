"""The climb of a run, wired: attempts on workplaces of their own, judged by the checks, kept in the record."""
