"""The stores, a file for each."""
