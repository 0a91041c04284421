"""`/api/v1/`: the full API. It is only ever extended."""
