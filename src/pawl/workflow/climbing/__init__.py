"""How a run climbs its ladder, as pure functions: what comes next, what counts as progress, what is handed on."""
