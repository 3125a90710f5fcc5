"""Paddle's `inference`: saved networks behind handles that copy arrays in and out."""

from __future__ import annotations

from .predictor import (
    Config,
    DataType,
    PlaceType,
    PrecisionType,
    Predictor,
    PredictorPool,
    Tensor,
    create_predictor,
    get_num_bytes_of_data_type,
    get_version,
)

__all__ = [
    "Config",
    "DataType",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_version",
]
