"""Loggers as Paddle's parts make them."""

import logging


def get_logger(name: str, level, fmt: str | None = None) -> logging.Logger:
    """A logger of its own that writes to the standard error."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        if fmt:
            handler.setFormatter(logging.Formatter(fmt=fmt, datefmt="%a %b %d %H:%M:%S"))
        logger.addHandler(handler)
    logger.propagate = False
    return logger
