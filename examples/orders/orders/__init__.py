"""Orders of a small shop: lines, prices, pages and shipping."""
