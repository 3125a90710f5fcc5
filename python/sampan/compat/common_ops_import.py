"""What layers written for Paddle import from one place."""

from .. import ParamAttr  # noqa: F401
from .base import core  # noqa: F401
from .base.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype  # noqa: F401
from .base.framework import (  # noqa: F401
    Variable,
    convert_np_dtype_to_dtype_,
    dygraph_only,
    in_dygraph_mode,
    in_dynamic_mode,
)
from .base.layer_helper import LayerHelper  # noqa: F401
