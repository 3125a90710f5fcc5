"""What programs make for the static half of a layer of their own; in dynamic graphs it is made and not used."""

from ...nn.layer.helper import LayerObjectHelper
from ...utils import unique_name


class LayerHelper(LayerObjectHelper):
    """Knows the arguments of a function, and adds ops to a static graph, which there is none of."""

    def __init__(self, layer_type, **kwargs):
        super().__init__(kwargs.get("name") or unique_name.generate(layer_type))
        self.layer_type, self.kwargs = layer_type, kwargs

    @property
    def param_attr(self):
        """What was said of the parameters."""
        return self.kwargs.get("param_attr")

    @property
    def bias_attr(self):
        """What was said of the bias."""
        return self.kwargs.get("bias_attr")

    def input(self, input_param_name="input"):
        """The one input of a name."""
        given = self.kwargs.get(input_param_name)
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(given) != 1:
            raise ValueError(f"(InvalidArgument) {self.layer_type}: one input is needed, got {len(given)}.")
        return given[0]

    def input_dtype(self, input_param_name="input"):
        """The dtype of an input, which all inputs of that name share."""
        given = self.kwargs.get(input_param_name)
        dtypes = [t.dtype for t in (given if isinstance(given, (list, tuple)) else [given])]
        if any(dtype != dtypes[0] for dtype in dtypes):
            raise ValueError(f"(InvalidArgument) {self.layer_type}: inputs have different dtypes.")
        return dtypes[0]

    def append_activation(self, input_var, act=None, use_cudnn=None):
        """The activation that the function was told, of `input_var`."""
        return super().append_activation(input_var, self.kwargs.get("act") if act is None else act)
