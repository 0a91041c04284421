"""Reconciliation: the W3C Reconciliation API, version 0.2."""
