"""The power of the audit and its rate of false alarms: known leaks, noise and planted secrets."""
