"""The versions of sampan, of the API it follows, and of the libraries it was built with.

>>> from sampan import version
>>> version.full_version == ".".join((version.major, version.minor, version.patch))
True
"""

try:
    from sampan._core import __version__ as full_version
except ImportError:  # The core is not built, or does not say.
    full_version = "0.0.0"

# The version of Paddle whose names, arguments and behaviour this one has.
api_version = "3.3.1"

major, minor, patch = full_version.split("-")[0].split(".")[:3]
rc = "0"
commit = "unknown"
istaged = True

__all__ = ["cuda", "cudnn", "nccl", "show", "xpu", "xpu_xre", "xpu_xccl", "xpu_xhpc", "tensorrt", "cuda_archs", "hip"]

# As in Paddle, what a build lacks has the version "False".
_ABSENT = "False"


def _absent(library):
    def version():
        return _ABSENT

    version.__name__ = version.__qualname__ = library
    version.__doc__ = f'The version of {library} this build uses; "False" without it.'
    return version


cuda, cudnn, nccl, tensorrt = map(_absent, ("cuda", "cudnn", "nccl", "tensorrt"))
xpu, xpu_xre, xpu_xccl, xpu_xhpc, cinn = map(_absent, ("xpu", "xpu_xre", "xpu_xccl", "xpu_xhpc", "cinn"))
hip = None


def mkl():
    """Whether matrices are multiplied by MKL; they are not, sampan has kernels of its own."""
    return "OFF"


def cuda_archs():
    """The GPU generations this build has code for."""
    return []


def show():
    """Prints all versions."""
    versions = {"full_version": full_version, "major": major, "minor": minor, "patch": patch, "rc": rc}
    versions |= {"api": api_version, "cuda": cuda(), "cudnn": cudnn(), "nccl": nccl(), "cuda_archs": cuda_archs()}
    for name, version in versions.items():
        print(f"{name}: {version}")
