"""Options, output and messages that commands share."""
