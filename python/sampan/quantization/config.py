"""Which layers are quantised, and how."""

from __future__ import annotations

from .. import nn


class SingleLayerConfig:
    """The factories for what a layer reads, and for its weight."""

    def __init__(self, activation, weight):
        self.activation, self.weight = activation, weight

    def __str__(self):
        return f"activation: {self.activation}\nweight: {self.weight}"


class ObserveWrapper(nn.Layer):
    """A layer whose input goes through a quanter."""

    def __init__(self, observer, observed, observe_input=True):
        super().__init__()
        self._observer, self._observed, self._observe_input = observer, observed, observe_input

    def forward(self, *inputs, **kwargs):
        if self._observe_input:
            return self._observed(self._observer(*inputs), **kwargs)
        return self._observer(self._observed(*inputs, **kwargs))


def _subclass(value, what):
    if not (isinstance(value, type) and issubclass(value, nn.Layer)):
        raise TypeError(f"(InvalidType) QuantConfig: {what} is a class of layers, received {value!r}.")


class QuantConfig:
    """Factories of quanters for all layers, and others for some: by layer, by the layer's name or by its class.

    >>> import sampan
    >>> from sampan.quantization import QuantConfig
    >>> from sampan.quantization.observers import AbsmaxObserver
    >>> config = QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver())
    >>> config.add_type_config(sampan.nn.Linear, weight=AbsmaxObserver(quant_bits=8))
    """

    def __init__(self, activation, weight):
        self._global_config = None if activation is None and weight is None else SingleLayerConfig(activation, weight)
        self._layer2config: dict = {}
        self._prefix2config: dict = {}
        self._type2config: dict = {}
        self._model = None
        self._qat_layer_mapping = dict(self.default_qat_layer_mapping)
        self._customized_leaves: list = []

    def add_layer_config(self, layer, activation=None, weight=None):
        """For a layer, or a list of them."""
        for one in layer if isinstance(layer, (list, tuple)) else [layer]:
            self.add_name_config(one.full_name(), activation, weight)

    def add_name_config(self, layer_name, activation=None, weight=None):
        """For the layer of a full name, or a list of them."""
        for one in [layer_name] if isinstance(layer_name, str) else layer_name:
            self._prefix2config[one] = SingleLayerConfig(activation, weight)

    def add_type_config(self, layer_type, activation=None, weight=None):
        """For all layers of a class, or of a list of them."""
        for one in layer_type if isinstance(layer_type, (list, tuple)) else [layer_type]:
            _subclass(one, "layer_type")
            self._type2config[one] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source, target):
        """Layers of the class `source` become `target(layer, config)`."""
        _subclass(source, "source")
        _subclass(target, "target")
        self._qat_layer_mapping[source] = target

    def add_customized_leaf(self, layer_type):
        """Layers of this class are one whole, whatever they are made of."""
        self._customized_leaves.append(layer_type)

    @property
    def customized_leaves(self):
        return self._customized_leaves

    @property
    def qat_layer_mappings(self):
        return self._qat_layer_mapping

    @property
    def default_qat_layer_mapping(self):
        quant = nn.quant
        return {
            quant.Stub: quant.stub.QuanterStub,
            nn.Linear: quant.qat.QuantedLinear,
            nn.Conv2D: quant.qat.QuantedConv2D,
        }

    @property
    def global_config(self):
        return self._global_config

    def _of(self, layer):
        return self._layer2config.get(id(layer))

    def _specify(self, model):
        """Finds out what holds for each layer of a model."""
        self._model = model
        self._layer2config = {}
        self._walk(model)

    def _walk(self, model):
        for child in model.children():
            config = self._layer2config.get(id(model), self._global_config)
            config = self._type2config.get(type(child), config)
            config = self._prefix2config.get(child.full_name(), config)
            if config is not None:
                self._layer2config[id(child)] = config
            self._walk(child)

    def _quanted(self, layer):
        """The layer in its place that computes on the grid; `None` for one that has none."""
        target = self._qat_layer_mapping.get(type(layer))
        return None if target is None or self._of(layer) is None else target(layer, self._of(layer))

    def _observed(self, layer):
        """A layer without others inside, with its input watched; `None` for one that is not."""
        leaf = type(layer) in (nn.ReLU, nn.AvgPool2D, *self._customized_leaves) or not list(layer.children())
        config = self._of(layer)
        if not leaf or config is None or config.activation is None:
            return None
        return ObserveWrapper(config.activation._instance(layer), layer)

    def details(self) -> str:
        """What holds for each layer of the model, once it is known."""
        return str(self) if self._model is None else self._details(self._model)

    def _details(self, layer) -> str:
        lines = []
        for name, child in layer.named_children():
            text = self._details(child).replace("\n", "\n  ")
            if self._of(child) is not None:
                lines.append(f"({name}): {text}, {self._of(child)}")
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{type(layer).__name__}({inside})"

    def __str__(self):
        text = f"Global config:\n{self._global_config}\n"
        if self._type2config:
            text += f"Layer type config:\n{self._type2config}\n"
        if self._prefix2config:
            text += f"Layer prefix config: \n{self._prefix2config}\n"
        return text
