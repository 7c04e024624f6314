"""Models that are files on this machine: a managed child process serves each on loopback."""
