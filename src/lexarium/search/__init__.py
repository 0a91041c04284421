"""What finds terms: in memory, fed from the store, disposable."""
