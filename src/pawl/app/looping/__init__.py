"""`pawl loop`: ladders from flags and files, orders that climb them, and the report of what came of it."""
