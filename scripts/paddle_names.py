"""PaddlePaddle's public names: the namespaces that we follow, and the fixture that records their signatures."""
import importlib
import inspect
import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "python/tests/fixtures/paddle_names.json"

# Modules count what they list in `__all__`; classes what they hold without a leading underscore.
MODULES = """
    paddle nn nn.functional nn.initializer nn.utils optimizer optimizer.lr regularizer metric io vision vision.datasets
    vision.transforms vision.models vision.ops amp autograd device static jit callbacks linalg fft signal distribution
    text utils profiler version
""".split()
CLASSES = ["Tensor", "nn.Layer", "Model", "optimizer.Optimizer", "optimizer.lr.LRScheduler"]
NAMESPACES = ["paddle", "paddle.Tensor", *(f"paddle.{name}" for name in MODULES[1:] + CLASSES[1:])]
# Namespaces of which only these names matter to a dynamic-graph framework.
ONLY = {"paddle.static": ["InputSpec"]}


def is_class(namespace):
    return namespace.removeprefix("paddle.") in CLASSES


def resolve(namespace, package="paddle"):
    """The module or class that `namespace` means in `package`, or None where the package has no such thing."""
    path = package + namespace.removeprefix("paddle")
    module, _, attribute = path.rpartition(".") if is_class(namespace) else (path, "", "")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module of ours that fails for want of another package is broken, not absent.
        if error.name and (path + ".").startswith(error.name + "."):
            return None
        raise
    return getattr(found, attribute, None) if attribute else found


def public_names(namespace, package="paddle"):
    """The public names of Paddle's `namespace` that really exist there, sorted."""
    space = resolve(namespace, package)
    names = ONLY.get(namespace) or getattr(space, "__all__", None) or [n for n in dir(space) if not n.startswith("_")]
    return sorted(n for n in set(names) if hasattr(space, n))


def describe(space, name):
    """What `space.name` is: its kind, and its parameters as [name, kind, default], or None where Python cannot tell."""
    thing = getattr(space, name)
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "value"
    return {"kind": kind, "parameters": parameters(thing) if kind != "value" else None}


def parameters(thing):
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, None if p.default is p.empty else default_text(p.default)] for p in found]


def default_text(value):
    """One text for equal defaults: 1 and 1.0, tuples and lists, a dtype and its name are the same."""
    if value is None or isinstance(value, (bool, str)):
        return repr(value)
    if isinstance(value, (int, float)):
        return repr(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(default_text, value)) + "]"
    text = getattr(value, "__name__", None) or str(value)
    if text.startswith("<"):  # an enumeration member, or an object whose text is its address
        text = getattr(value, "name", type(value).__name__)
    return repr(text.rsplit(".", 1)[-1])


def record():
    """Writes the fixture from the installed PaddlePaddle, one name a line."""
    import paddle

    namespaces = {}
    for namespace in NAMESPACES:
        space = resolve(namespace)
        namespaces[namespace] = {name: describe(space, name) for name in public_names(namespace)}
    blocks = (
        f"{json.dumps(space)}: {{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(d)}" for n, d in names.items()) + "\n}"
        for space, names in namespaces.items()
    )
    methods = json.dumps(sorted(set(paddle.tensor.tensor_method_func)))
    text = f'{{"version": {json.dumps(paddle.__version__)},\n"tensor_methods": {methods},\n"namespaces": {{\n'
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    FIXTURE.write_text(text + ",\n".join(blocks) + "\n}}\n")


def recorded():
    """The fixture: `version`, `tensor_methods` (Paddle's own list of them) and `namespaces`."""
    return json.loads(FIXTURE.read_text())
