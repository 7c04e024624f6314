"""Small edits that programmers' slips are made of, each with a cost: the likelier, the cheaper."""
