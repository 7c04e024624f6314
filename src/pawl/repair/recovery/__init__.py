"""The recovery map as data: one TOML file per language."""
