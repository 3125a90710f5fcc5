"""Compiles the device text of every formula with NVRTC: `pip install nvidia-cuda-nvrtc`, then
`SAMPAN_DEVICE_TEXT=/tmp/formulas.cu cargo test -p sampan-core --test suite device_text` and
`python scripts/device_text.py /tmp/formulas.cu`. Needs no GPU."""

import ctypes
import glob
import os
import re
import sys
import time

ARCHITECTURE = "sm_90"


def library():
    import nvidia

    found = [p for base in nvidia.__path__ for p in glob.glob(os.path.join(base, "*", "lib", "libnvrtc.so.*"))]
    found = [p for p in found if "builtins" not in p and ".alt." not in p]
    if not found:
        sys.exit("libnvrtc is not installed: pip install nvidia-cuda-nvrtc")
    return ctypes.CDLL(found[0])


def compile_text(rtc, text, instances=()):
    """The log of the compiler, empty if all is well. `instances` of templates are compiled as well."""
    program = ctypes.c_void_p()
    rtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"formulas.cu", 0, None, None)
    for name in instances:
        rtc.nvrtcAddNameExpression(program, name.encode())
    options = [f"--gpu-architecture={ARCHITECTURE}".encode(), b"--fmad=false", b"--std=c++17"]
    status = rtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    rtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    rtc.nvrtcGetProgramLog(program, log)
    rtc.nvrtcDestroyProgram(ctypes.byref(program))
    return "" if status == 0 else log.value.decode() or f"status {status}"


def main():
    text = open(sys.argv[1]).read()
    start = re.search(r"^__device__ __forceinline__ \w+ [km]\d+_of\(", text, re.M).start()
    prelude, rest = text[:start], text[start:]
    kernels = re.split(r"(?m)^(?=__device__ __forceinline__ \w+ [km]\d+_of\()", rest)[1:]
    rtc, began, bad = library(), time.time(), 0
    for at in range(0, len(kernels), 200):
        part = kernels[at : at + 200]
        if not compile_text(rtc, prelude + "".join(part)):
            continue
        for kernel in part:
            log = compile_text(rtc, prelude + kernel)
            if log:
                bad += 1
                print(kernel, log, sep="\n")
    print(f"{len(kernels)} kernels, {bad} refused, {time.time() - began:.1f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
