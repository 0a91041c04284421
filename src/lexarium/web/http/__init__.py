"""HTTP building blocks shared by all endpoints."""
