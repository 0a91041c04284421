"""One codec a format: bytes to records, records to bytes, both streaming."""
