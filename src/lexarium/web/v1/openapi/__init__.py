"""The OpenAPI document of v1 and v-alpha, and its page."""
