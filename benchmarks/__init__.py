"""Where time and memory are judged, and nowhere else: `make bench`."""
