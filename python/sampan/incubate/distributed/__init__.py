"""Helpers for processes that train together."""
