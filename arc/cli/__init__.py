"""The operator's commands: words in, text or one line of JSON out."""
