"""Checks of arguments that user-written ops borrow from Paddle."""

from ... import _core


def convert_dtype(dtype) -> str:
    """The name of a dtype: `float32`."""
    return str(_core.to_tensor_py(0, dtype).dtype).rpartition(".")[2]


def check_type(input, input_name, expected_type, op_name, extra_message=""):
    """Raises a TypeError unless the argument has the type."""
    if not isinstance(input, expected_type):
        kinds = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"(InvalidType) {op_name}: {input_name} must be {wanted}, received {type(input).__name__}. {extra_message}"
        )


def check_dtype(input_dtype, input_name, expected_dtype, op_name, extra_message=""):
    """Raises a TypeError unless the dtype is one of those."""
    wanted = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    if convert_dtype(input_dtype) not in map(convert_dtype, wanted):
        raise TypeError(
            f"(InvalidType) {op_name}: the dtype of {input_name} must be one of {wanted}, received "
            f"{convert_dtype(input_dtype)}. {extra_message}"
        )


def check_variable_and_dtype(input, input_name, expected_dtype, op_name, extra_message=""):
    """Raises a TypeError unless the argument is a tensor with one of those dtypes."""
    check_type(input, input_name, _core.Tensor, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)
