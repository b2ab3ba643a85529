"""Which nodes and pairs of nodes play which role."""
