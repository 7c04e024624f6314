"""Ways to use Pawl; they hold no logic."""
