"""`/api/v-alpha/`: the frozen read interface, and POST. It sets its own headers and dispatches its own methods."""
