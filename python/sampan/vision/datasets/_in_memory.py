"""Small images of one size, all in the core's memory."""

from __future__ import annotations

from ... import _core
from ...io import Dataset
from ..transforms.transforms import pipeline_of
from ...io.files import pillow

# Transforms that change every value by itself, whatever stands around it. They give arrays and tensors.
_POINTWISE = frozenset({"ToTensor", "Normalize", "Transpose"})


def _is_pointwise(transform) -> bool:
    kind = type(transform)
    if not kind.__module__.startswith("sampan.vision.transforms"):
        return False
    if kind.__name__ == "Compose":
        return all(_is_pointwise(t) for t in transform.transforms)
    return kind.__name__ in _POINTWISE


class InMemoryImages(Dataset):
    """Images and labels that `_set` holds."""

    _set: _core.ImageSet

    def _keep(self, images: _core.ImageSet, transform, backend: str) -> None:
        self._set, self.transform, self.backend = images, transform, backend
        self.dtype = _core.get_default_dtype()
        # What a user puts in the place of the set's own.
        self._own: dict[str, list] = {}

    def _image(self, index: int):
        """The bytes of an image, `[H, W]` or `[H, W, C]`."""
        import numpy as np

        channels, *plane = self._set.extents
        flat = np.frombuffer(bytearray(self._set.image(index)), "uint8")
        return flat.reshape(plane if channels == 1 else [*plane, channels])

    def _finished(self, image):
        """An image as a sample has it."""
        if self.backend == "pil":
            image = pillow(type(self).__name__).fromarray(image.astype("uint8"))
            return image if self.transform is None else self.transform(image)
        image = self._array(image)
        return (image if self.transform is None else self.transform(image)).astype(self.dtype)

    def _array(self, image):
        """What a transform is given with the backend `'cv2'`."""
        return image

    def _place(self, index) -> int:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"(OutOfRange) {type(self).__name__} has {size} samples, there is none at index {index}.")
        return int(index) % size

    def __len__(self) -> int:
        return len(self._set)

    def _rust(self):
        """The set with the same samples that the core makes, if it can."""
        if self._own or self.dtype != "float32" or len(self) == 0:
            return None
        plain = self.transform is None and self.backend == "cv2"
        table = self._by_table() if plain or _is_pointwise(self.transform) else None
        if table is not None or self.transform is None:
            return table
        chain = pipeline_of(self.transform)
        # Pillow's pictures cannot be stacked.
        if chain is None or (self.backend == "pil" and not _POINTWISE & set(chain.names)):
            return None
        floats = self.backend == "cv2" and self._array(self._image(0)).dtype == "float32"
        return self._set.transformed(chain, floats, self.backend == "cv2"), None

    def _by_table(self):
        """The set with a table in the place of its transform, if that gives the same: whole batches are then made at
        once."""
        import numpy as np

        channels, height, width = self._set.extents
        if height * width < 256:
            return None
        # What becomes of an image that has every byte in every channel.
        byte = np.arange(height * width, dtype="uint8")
        probe = byte.reshape(height, width)
        probe = probe if channels == 1 else np.ascontiguousarray(np.repeat(probe[..., None], channels, 2))
        try:
            made, first = (np.asarray(self._finished(image)) for image in (probe, self._image(0)))
        except Exception:
            # Reading the first sample will raise it again, where the user expects it.
            return None
        last = channels > 1 and made.shape == (height, width, channels)
        fits = last or made.shape == (channels, height, width) or (channels == 1 and made.size == byte.size)
        if made.dtype != np.float32 or not fits:
            return None
        planes = np.moveaxis(made, -1, 0) if last else made
        tables = planes.reshape(channels, -1)[:, :256]
        data = self._set.tabulated(tables.tolist(), list(made.shape), last)
        same = np.array_equal(data.get(0)[0].numpy(), first, equal_nan=True)
        return (data, None) if same else None
