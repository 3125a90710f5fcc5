"""The version of the package, and of the libraries it was built with."""

full_version = "0.1.0"
major, minor, patch = full_version.split(".")
rc = "0"
commit = "unknown"
istaged = True


def _false() -> str:
    """'False': it was built without."""
    return "False"


cuda = cudnn = nccl = xpu = xpu_xre = xpu_xccl = xpu_xhpc = tensorrt = hip = _false


def cuda_archs() -> list[int]:
    """Kinds of GPU that it was built for."""
    return []


def show() -> None:
    """Prints the versions."""
    for name in ("full_version", "major", "minor", "patch", "rc"):
        print(f"{name}: {globals()[name]}")
    print("cuda: False\ncudnn: False")
