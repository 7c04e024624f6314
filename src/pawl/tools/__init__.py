"""What a model may call: one small module and one page of text each."""
