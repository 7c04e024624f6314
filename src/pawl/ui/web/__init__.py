"""The page in the browser: a server on loopback that only its user can speak with."""
