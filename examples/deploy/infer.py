"""Runs a saved network: `python infer.py inference/net.pdmodel`.

Every input is filled with numbers from 0 up to 1, and an extent that may be anything is 1.
"""

import sys

import numpy as np

from sampan import inference


def main(path):
    predictor = inference.create_predictor(inference.Config(path))
    for name in predictor.get_input_names():
        handle = predictor.get_input_handle(name)
        shape = [1 if extent < 0 else extent for extent in handle.shape()]
        count = int(np.prod(shape))
        print("input", name, shape)
        handle.copy_from_cpu((np.arange(count, dtype="float32") / np.float32(count)).reshape(shape))
    predictor.run()
    for i, name in enumerate(predictor.get_output_names()):
        values = predictor.get_output_handle(name).copy_to_cpu()
        print("output", i, list(values.shape), *(f"{v:.4f}" for v in values.ravel()[:10]))


if __name__ == "__main__":
    main(sys.argv[1])
