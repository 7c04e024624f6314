"""Test frameworks as data: one TOML file each."""
