"""Packages that only some functions need."""

import importlib

# Where the name to install is not the name to import.
_INSTALLED_AS = {"cv2": "opencv-python", "PIL": "Pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}


def try_import(module_name, err_msg=None):
    """The module of that name, or an ImportError that says how to get it.

    >>> from sampan.utils import try_import
    >>> try_import("math").sqrt(4.0)
    2.0
    >>> try_import("no_such_module_at_all")
    Traceback (most recent call last):
    ...
    ImportError: no_such_module_at_all cannot be imported. Hint: pip install no_such_module_at_all
    """
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        package = module_name.split(".")[0]
        hint = f"Hint: pip install {_INSTALLED_AS.get(package, package)}"
        raise ImportError(err_msg or f"{module_name} cannot be imported. {hint}") from error
