"""One run, one folder: train it, audit it, apply it to another graph."""
