"""ASGI middleware and the uvicorn protocol."""
