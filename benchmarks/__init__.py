"""Benchmarks of time and memory: `make bench`."""
