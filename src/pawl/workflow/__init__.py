"""How a run goes: turns with a model, their limits and their record."""
