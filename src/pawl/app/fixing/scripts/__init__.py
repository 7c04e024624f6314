"""Repairs of TypeScript and JavaScript: the recovery map, the compiler's code fixes, and a search by the tests."""
