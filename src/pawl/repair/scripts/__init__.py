"""The search for patches of JavaScript and TypeScript: proposals on the syntax tree, tried by a warm Node."""
