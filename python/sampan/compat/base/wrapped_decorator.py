"""Decorators that keep the signature of what they decorate."""

import contextlib
import functools

signature_safe_contextmanager = contextlib.contextmanager


def wrap_decorator(decorator):
    """A decorator whose result looks like the function it was given."""
    return lambda function: functools.wraps(function)(decorator(function))
