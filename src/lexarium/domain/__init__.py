"""What a catalogue is, with no input or output: records, collections, relations, changes, errors."""
