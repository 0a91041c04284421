"""Finding records, and their names in text. Disposable: all of it is made from the log."""
