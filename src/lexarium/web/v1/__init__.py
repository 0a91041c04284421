"""`/api/v1/`: everything that curators and programs need beyond the frozen interface. It only ever grows."""
