"""Configurations, predictors and the handles of their inputs and outputs."""

from __future__ import annotations

import enum
import os

import numpy as np

from .. import _core, version


class DataType(enum.Enum):
    """What the elements of a tensor are."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BFLOAT16 = 6
    BOOL = 7
    FLOAT64 = 8


class PrecisionType(enum.Enum):
    """What a network computes in."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


class PlaceType(enum.Enum):
    """Where a tensor lies."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 3


_BYTES = {"FLOAT32": 4, "INT64": 8, "INT32": 4, "UINT8": 1, "INT8": 1, "FLOAT16": 2, "BFLOAT16": 2, "BOOL": 1, "FLOAT64": 8}


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """The size of an element."""
    return _BYTES[dtype.name]


def get_version() -> str:
    """The version of this package."""
    return f"version: {version.full_version}"


class Config:
    """Where a saved network lies, and how it is to run.

    >>> import sampan, tempfile
    >>> path = tempfile.mkdtemp() + "/net"
    >>> sampan.jit.save(sampan.nn.Linear(2, 1), path, input_spec=[sampan.static.InputSpec([None, 2], "float32", "x")])
    >>> predictor = sampan.inference.create_predictor(sampan.inference.Config(path + ".pdmodel", path + ".pdiparams"))
    >>> predictor.get_input_names()
    ['x']
    """

    def __init__(self, prog_file=None, params_file=None):
        self._program = self._params = None
        self._switches: dict[str, object] = {"ir_optim": True, "memory_optim": False, "glog": True}
        self._threads = 1
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    def set_model(self, prog_file, params_file=None) -> None:
        """Names both files, or the beginning of their names, or their folder."""
        prog = os.fspath(prog_file)
        if params_file is not None:
            self._program, self._params = prog, os.fspath(params_file)
            return
        for end in (".pdmodel", ".json"):
            if prog.endswith(end):
                self._program, self._params = prog, prog.removesuffix(end) + ".pdiparams"
                return
            if os.path.exists(prog + end):
                self._program, self._params = prog + end, prog + ".pdiparams"
                return
        self._program, self._params = os.path.join(prog, "__model__"), os.path.join(prog, "__params__")

    def set_prog_file(self, path) -> None:
        """Names the file of the program."""
        self._program = os.fspath(path)

    def set_params_file(self, path) -> None:
        """Names the file of the parameters."""
        self._params = os.fspath(path)

    def prog_file(self) -> str:
        """The file of the program."""
        return self._program or ""

    def params_file(self) -> str:
        """The file of the parameters."""
        return self._params or ""

    def model_dir(self) -> str:
        """The folder of the program."""
        return os.path.dirname(self._program or "")

    def disable_gpu(self) -> None:
        """Runs on the processor, which it does anyway."""

    def use_gpu(self) -> bool:
        """False."""
        return False

    def enable_use_gpu(self, memory_pool_init_size_mb=100, device_id=0, precision=PrecisionType.Float32) -> None:
        """There is no such device here."""
        raise NotImplementedError(
            "(Unavailable) Config.enable_use_gpu: predictors run on the processor. Hint: leave the call out."
        )

    def set_cpu_math_library_num_threads(self, n: int) -> None:
        """How many threads a run may use."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"(InvalidArgument) set_cpu_math_library_num_threads: a positive int is needed, got {n!r}.")
        self._threads = n

    def cpu_math_library_num_threads(self) -> int:
        """How many threads a run may use."""
        return self._threads

    def switch_ir_optim(self, x: bool = True) -> None:
        """Allows or forbids changes to the graph."""
        self._switches["ir_optim"] = bool(x)

    def ir_optim(self) -> bool:
        """Is the graph changed to run faster?"""
        return bool(self._switches["ir_optim"])

    def enable_memory_optim(self, x: bool = True) -> None:
        """Gives memory back as soon as it is not needed, which is done anyway."""
        self._switches["memory_optim"] = bool(x)

    def disable_glog_info(self) -> None:
        """Says nothing, which it does anyway."""
        self._switches["glog"] = False

    def glog_info_disabled(self) -> bool:
        """Was that asked for?"""
        return not self._switches["glog"]

    # Switches of libraries that are not used here.
    def enable_mkldnn(self) -> None:
        """Changes nothing: the kernels are this package's own."""

    enable_onednn = disable_mkldnn = disable_onednn = enable_mkldnn

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Changes nothing: inputs and outputs are handles."""

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Changes nothing: inputs have names."""

    def enable_profile(self) -> None:
        """Changes nothing; `sampan.profiler` sees every call."""

    def summary(self) -> str:
        """The settings as a table."""
        rows = {"model_file": self.prog_file(), "params_file": self.params_file(), "cpu_math_thread": self._threads}
        return "\n".join(f"{name:<18} {value}" for name, value in (rows | self._switches).items())


class Tensor:
    """A handle of an input or an output."""

    def __init__(self, name: str, shape: list[int], dtype, output: bool):
        self._name, self._shape, self._dtype, self._output = name, shape, dtype, output
        self._value = None

    def name(self) -> str:
        """Its name in the program."""
        return self._name

    def reshape(self, shape) -> None:
        """Says which shape the next array has; `copy_from_cpu` knows it anyway."""
        self._shape = [int(n) for n in shape]

    def copy_from_cpu(self, data) -> None:
        """Takes an array."""
        if self._output:
            raise RuntimeError(f"(PreconditionNotMet) copy_from_cpu: {self._name!r} is an output.")
        if not isinstance(data, np.ndarray):
            raise TypeError(f"(InvalidType) copy_from_cpu: a numpy array is needed, got {type(data).__name__}.")
        self._value = _core.to_tensor_py(data)

    def share_external_data(self, data) -> None:
        """Takes a tensor or an array."""
        self._value = data if isinstance(data, _core.Tensor) else _core.to_tensor_py(np.asarray(data))

    def copy_to_cpu(self):
        """Gives an array."""
        if self._value is None:
            raise RuntimeError(f"(PreconditionNotMet) copy_to_cpu: {self._name!r} has no value yet. Hint: run() first.")
        return self._value.numpy()

    def shape(self) -> list[int]:
        """The shape of its value, or what is known of it before."""
        return list(self._shape) if self._value is None else list(self._value.shape)

    def type(self) -> DataType:
        """What its elements are."""
        dtype = self._dtype if self._value is None else self._value.dtype
        return DataType[dtype.name.upper()]


class Predictor:
    """A network that is ready to run. Clones share its weights."""

    def __init__(self, config, graph=None, planned=None):
        if not isinstance(config, Config):
            raise TypeError(f"(InvalidType) create_predictor: a Config is needed, got {type(config).__name__}.")
        self._config = config
        if graph is None:
            graph = _core.Graph.load_files(config.prog_file(), config.params_file())
            if config.ir_optim():
                planned = _core.Predictor(graph)
                graph = planned.graph()
        self._graph, self._planned = graph, planned
        self._inputs = {name: Tensor(name, shape, dtype, False) for name, shape, dtype in self._graph.inputs()}
        self._outputs = {
            f"fetch_name_{i}": Tensor(f"fetch_name_{i}", shape, dtype, True)
            for i, (shape, dtype) in enumerate(self._graph.outputs())
        }

    def get_input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input."""
        if name not in self._inputs:
            raise KeyError(f"(NotFound) get_input_handle: there is no input {name!r}; there are {list(self._inputs)}.")
        return self._inputs[name]

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output."""
        if name not in self._outputs:
            raise KeyError(f"(NotFound) get_output_handle: there is no output {name!r}; there are {list(self._outputs)}.")
        return self._outputs[name]

    get_input_tensor, get_output_tensor = get_input_handle, get_output_handle

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """What is known of the shapes of the inputs."""
        return {name: shape for name, shape, _ in self._graph.inputs()}

    def run(self, inputs=None):
        """Computes the outputs: from the arrays in the handles, or from a list of tensors, which gives a list back."""
        if inputs is None:
            missing = [name for name, handle in self._inputs.items() if handle._value is None]
            if missing:
                raise RuntimeError(
                    f"(PreconditionNotMet) Predictor.run: the input {missing[0]!r} has no value. "
                    "Hint: get_input_handle(name).copy_from_cpu(array)."
                )
            given = [handle._value for handle in self._inputs.values()]
        else:
            given = list(inputs)
        if self._planned is not None:
            results = self._planned.run(given)
        else:
            from .. import no_grad

            with no_grad():
                results = self._graph.run(given)
        for handle, value in zip(self._outputs.values(), results):
            handle._value = value
        return True if inputs is None else results

    def clone(self, *_) -> Predictor:
        """Another predictor on the same weights, for another thread."""
        return Predictor(self._config, self._graph, self._planned)

    def clear_intermediate_tensor(self) -> None:
        """Does nothing: they are given back during a run."""

    def try_shrink_memory(self) -> int:
        """Gives memory that nobody uses back."""
        _core._release_cache()
        return 0


class PredictorPool:
    """Several predictors on the same weights."""

    def __init__(self, config: Config, size: int = 1):
        first = Predictor(config)
        self._all = [first, *(first.clone() for _ in range(size - 1))]

    def retrieve(self, i: int) -> Predictor:
        """One of them."""
        return self._all[i]

    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """Reads a saved network and makes it ready to run."""
    return Predictor(config)
