"""Files in folders as data sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ... import _core
from ...io import Dataset
from ...io.files import pillow

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_valid_extension(filename: str, extensions: Sequence[str]) -> bool:
    """Does a file's name end with one of `extensions`, in small or large letters?"""
    if not isinstance(extensions, (list, tuple)):
        raise TypeError(f"(InvalidType) extensions must be a list or a tuple, got {type(extensions).__name__}.")
    return filename.lower().endswith(tuple(e.lower() for e in extensions))


def _accepts(what: str, extensions, is_valid_file: Callable | None) -> Callable[[str], bool]:
    if extensions is not None and is_valid_file is not None:
        raise ValueError(f"(InvalidArgument) {what}: set extensions or is_valid_file, not both.")
    if is_valid_file is not None:
        return is_valid_file
    endings = IMG_EXTENSIONS if extensions is None else extensions
    return lambda path: has_valid_extension(path, endings)


def _files(folder: str, accepts: Callable[[str], bool]) -> list[str]:
    """All files below a folder that count, in order."""
    found = []
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        found += [path for path in (os.path.join(root, name) for name in sorted(names)) if accepts(path)]
    return found


def _root(what: str, root: str) -> str:
    folder = os.path.expanduser(root)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"(NotFound) {what}: there is no folder {os.fspath(root)!r}.")
    return folder


def _nothing(what: str, root: str, extensions) -> RuntimeError:
    wanted = "what is_valid_file accepts" if extensions is None else ", ".join(extensions)
    return RuntimeError(f"(PreconditionNotMet) {what}: found 0 files below {root}. Supported extensions are: {wanted}.")


def pil_loader(path):
    """The picture of a file, red, green and blue."""
    with open(path, "rb") as file:
        return pillow("DatasetFolder").open(file).convert("RGB")


def cv2_loader(path):
    """The picture of a file as bytes `[H, W, 3]`, red, green and blue."""
    from ..image import image_load

    return image_load(path, backend="cv2")[..., ::-1].copy()


def default_loader(path):
    """The picture of a file, by the backend that is set."""
    from ..image import get_image_backend

    return cv2_loader(path) if get_image_backend() == "cv2" else pil_loader(path)


class DatasetFolder(Dataset):
    """Each folder in `root` is a class; its files, at any depth, are the samples `(sample, class_index)`.

    Args:
        root: the folder of folders.
        loader: reads a file; by default pictures, by the backend that is set.
        extensions: how names must end, instead of those of pictures.
        transform: what is done to a sample.
        is_valid_file: which files count, instead of by their names.

    Attributes:
        classes: names of the classes; class_to_idx: their numbers; samples: paths and numbers; targets: numbers.
    """

    def __init__(
        self,
        root: str,
        loader: Callable | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:
        accepts = _accepts("DatasetFolder", extensions, is_valid_file)
        if extensions is None and is_valid_file is None:
            extensions = IMG_EXTENSIONS
        self.root, self.transform, self.extensions = root, transform, extensions
        self.loader = default_loader if loader is None else loader
        self.classes, self.class_to_idx = self._find_classes(_root("DatasetFolder", root))
        self.samples = [
            (path, index)
            for name, index in sorted(self.class_to_idx.items())
            for path in _files(os.path.join(os.path.expanduser(root), name), accepts)
        ]
        if not self.samples:
            raise _nothing("DatasetFolder", root, extensions)
        self.targets = [index for _, index in self.samples]
        self.dtype = _core.get_default_dtype()

    def _find_classes(self, dir: str) -> tuple[list[str], dict[str, int]]:
        classes = sorted(entry.name for entry in os.scandir(dir) if entry.is_dir())
        return classes, {name: i for i, name in enumerate(classes)}

    def __getitem__(self, index: int):
        path, target = self.samples[index]
        sample = self.loader(path)
        return (sample if self.transform is None else self.transform(sample)), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(Dataset):
    """All files below `root` are samples `[sample]`, without labels. The arguments are those of `DatasetFolder`."""

    def __init__(
        self,
        root: str,
        loader: Callable | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:
        accepts = _accepts("ImageFolder", extensions, is_valid_file)
        if extensions is None and is_valid_file is None:
            extensions = IMG_EXTENSIONS
        self.root, self.transform, self.extensions = root, transform, extensions
        self.loader = default_loader if loader is None else loader
        self.samples = _files(_root("ImageFolder", root), accepts)
        if not self.samples:
            raise _nothing("ImageFolder", root, extensions)

    def __getitem__(self, index: int) -> list:
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self) -> int:
        return len(self.samples)
