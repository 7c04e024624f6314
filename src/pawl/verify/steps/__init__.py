"""One module per verification step; each ends in a verdict."""
