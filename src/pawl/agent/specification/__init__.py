"""From an idea to code: the folder of a specification, its tasks, their waves, and the steps between them."""
