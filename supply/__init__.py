"""What the program is made of that others wrote: a list of it, and what is known to be wrong with it."""
