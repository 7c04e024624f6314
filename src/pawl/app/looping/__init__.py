"""`pawl loop`: the ladder of a run, from its tiers to what is attempted on them."""
