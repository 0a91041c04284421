"""`/api/v-alpha/`: the frozen read interface, and POST."""
