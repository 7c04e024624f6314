"""Ways to use Pawl; they decide nothing."""
