"""The queue: jobs that wait for workers, on this machine or on many."""
