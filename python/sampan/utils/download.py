"""Files from the network, kept in a cache."""

import hashlib
import logging
import os
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import urlparse

__all__ = ["get_weights_path_from_url"]

logger = logging.getLogger(__name__)


def home():
    """Where sampan keeps what it downloads: `SAMPAN_HOME`, or `~/.cache/sampan`."""
    return Path(os.environ.get("SAMPAN_HOME") or Path.home() / ".cache" / "sampan")


def is_url(path):
    """Whether `path` is a web address.

    >>> from sampan.utils.download import is_url
    >>> is_url("https://example.com/a.pdparams"), is_url("a.pdparams")
    (True, False)
    """
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url, md5sum=None):
    """The path of a file of weights, downloaded if it is not in the cache or its md5 sum is another."""
    return get_path_from_url(url, str(home() / "weights"), md5sum)


def get_path_from_url(url, root_dir, md5sum=None, check_exist=True, decompress=True, method="get"):
    """The path in `root_dir` of the file behind `url`, downloaded if need be; of its folder, if it is an archive."""
    if not is_url(url):
        raise ValueError(f"get_path_from_url: url must start with http:// or https://, but received {url!r}")
    path = Path(root_dir) / Path(urlparse(url).path).name
    if not (check_exist and path.is_file() and md5sum in (None, _md5_of(path))):
        _fetch(url, path, md5sum)
    return str(_unpacked(path) if decompress else path)


def _download(url, path, md5sum=None, method="get"):
    """The path in the folder `path` of the file behind `url`, downloaded anew."""
    target = Path(path) / Path(urlparse(url).path).name
    _fetch(url, target, md5sum)
    return str(target)


def _decompress(fname):
    """The path of what is in an archive, unpacked beside it."""
    return str(_unpacked(Path(fname)))


def _md5check(fullname, md5sum=None):
    """Is it the file of that md5 sum?"""
    return md5sum in (None, _md5_of(fullname))


def _get_unique_endpoints(trainer_endpoints):
    """One process of each machine: the first of its endpoints."""
    trainer_endpoints.sort()
    machines = {}
    for endpoint in trainer_endpoints:
        machines.setdefault(endpoint.split(":")[0], endpoint)
    return set(machines.values())


def _fetch(url, path, md5sum):
    hint = f"Hint: with a file from elsewhere, put it at {path}"
    try:
        from sampan._core import _download as fetch
    except ImportError:
        raise RuntimeError(f"{url} cannot be downloaded: sampan was built without network access. {hint}") from None
    try:
        fetch(url, str(path.parent), md5sum)
    except Exception as error:
        raise RuntimeError(f"{url} could not be downloaded: {error}. {hint}") from error


def _md5_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _unpacked(path):
    """What is in an archive, unpacked beside it; any other file itself."""
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        archive, options = tarfile.open(path), {"filter": "data"}
        names = archive.getnames()
    elif path.suffix == ".zip":
        archive, options = zipfile.ZipFile(path), {}
        names = archive.namelist()
    else:
        return path
    with archive:
        places = [_place(name, path) for name in names]
        tops = {place[0] for place in places if place}
        # An archive of many files gets a folder of its own.
        target = path.parent if len(tops) == 1 else path.parent / path.name.split(".")[0]
        target.mkdir(parents=True, exist_ok=True)
        archive.extractall(target, **options)
    return target / tops.pop() if len(tops) == 1 else target


def _place(name, path):
    """Where a member of an archive goes, in parts. A name that begins at the root is taken to begin at the target."""
    if ".." in name.replace("\\", "/").split("/"):
        raise ValueError(f"(InvalidArgument) {path} is not unpacked: its member {name!r} lies outside of it.")
    return [part for part in name.split("/") if part not in ("", ".")]
