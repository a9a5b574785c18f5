"""Encoders made by other toolkits."""
