"""The use cases: what people do with a catalogue, whether by HTTP or by command."""
