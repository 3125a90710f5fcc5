"""Metrics over all processes, from what each has counted."""

from __future__ import annotations

import math

import numpy

from .util import UtilBase


def _array(value):
    return numpy.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _all(value, mode: str, util):
    value = _array(value)
    return numpy.asarray((util or UtilBase()).all_reduce(value, mode)).reshape(value.shape)


def sum(input, scope=None, util=None):
    """The sum over all processes."""
    return _all(input, "sum", util)


def max(input, scope=None, util=None):
    """The largest over all processes."""
    return _all(input, "max", util)


def min(input, scope=None, util=None):
    """The smallest over all processes."""
    return _all(input, "min", util)


def _ratio(above, below, util) -> float:
    return float(sum(above, None, util).sum() / sum(below, None, util).sum())


def acc(correct, total, scope=None, util=None) -> float:
    """How many of all are right."""
    return _ratio(correct, total, util)


def mae(abserr, total_ins_num, scope=None, util=None) -> float:
    """The mean absolute error, from the sum of the errors and the number of samples."""
    return _ratio(abserr, total_ins_num, util)


def mse(sqrerr, total_ins_num, scope=None, util=None) -> float:
    """The mean squared error, from the sum of the squares and the number of samples."""
    return _ratio(sqrerr, total_ins_num, util)


def rmse(sqrerr, total_ins_num, scope=None, util=None) -> float:
    """The root of the mean squared error."""
    return math.sqrt(mse(sqrerr, total_ins_num, scope, util))


def auc(stat_pos, stat_neg, scope=None, util=None) -> float:
    """The area under the curve of true over false positives, from how many samples of either kind have each score."""
    pos = sum(stat_pos, None, util).reshape(-1)[::-1].cumsum()
    neg = sum(stat_neg, None, util).reshape(-1)[::-1].cumsum()
    if pos[-1] == 0 or neg[-1] == 0:
        return 0.5
    pos, neg = numpy.concatenate([[0.0], pos]), numpy.concatenate([[0.0], neg])
    area = ((neg[1:] - neg[:-1]) * (pos[1:] + pos[:-1]) / 2).sum()
    return float(area / (pos[-1] * neg[-1]))
