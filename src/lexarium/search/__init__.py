"""The search index: tantivy, and how text is folded, asked and ranked. Disposable: all of it is made from the log."""
