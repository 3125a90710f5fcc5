"""Files as training programs with parameter servers handle them: one set of names for this machine's and others'."""

from __future__ import annotations

import errno
import os
import pathlib
import secrets
import shutil


class ExecuteError(Exception):
    """A command of a file system failed."""


class FSFileExistsError(Exception):
    """There is such a file already."""


class FSFileNotExistsError(Exception):
    """There is no such file."""


class LocalFS:
    """The files of this machine."""

    def ls_dir(self, fs_path) -> tuple[list[str], list[str]]:
        """The names of the folders and of the files in a folder."""
        inside = sorted(pathlib.Path(fs_path).iterdir()) if self.is_exist(fs_path) else []
        return [p.name for p in inside if p.is_dir()], [p.name for p in inside if not p.is_dir()]

    def list_dirs(self, fs_path) -> list[str]:
        """The names of the folders in a folder."""
        return self.ls_dir(fs_path)[0]

    def mkdirs(self, fs_path) -> None:
        """Makes a folder, and those above it."""
        if self.is_file(fs_path):
            raise FSFileExistsError(f"(InvalidArgument) mkdirs: {fs_path} is a file.")
        pathlib.Path(fs_path).mkdir(parents=True, exist_ok=True)

    def rename(self, fs_src_path, fs_dst_path) -> None:
        """Gives a file or folder another name."""
        pathlib.Path(fs_src_path).rename(fs_dst_path)

    def delete(self, fs_path) -> None:
        """Removes a file, or a folder with all that is in it, if it is there."""
        path = pathlib.Path(fs_path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def mv(self, src_path, dst_path, overwrite=False, test_exists=False) -> None:
        """Moves a file or folder. What is overwritten stays as it was until all of what replaces it has come."""
        target = pathlib.Path(dst_path)
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(f"(NotFound) mv: there is no {src_path}.")
        if not self.is_exist(target):
            self._bring(src_path, target)
            return
        if not overwrite:
            raise FSFileExistsError(f"(InvalidArgument) mv: there is {dst_path} already. Hint: overwrite=True.")
        if os.path.samefile(src_path, target):
            return
        new, old = (target.with_name(f".{target.name}.{secrets.token_hex(4)}") for _ in range(2))
        self._bring(src_path, new)
        if target.is_dir() or new.is_dir():
            # A file takes the place of another at once; a folder has to go first.
            target.rename(old)
        new.replace(target)
        self.delete(old)

    def _bring(self, source, target) -> None:
        """Moves to where nothing is; to another file system by a copy, which may fail, before anything is removed."""
        try:
            os.rename(source, target)
            return
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        try:
            if os.path.isdir(source) and not os.path.islink(source):
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)
        except BaseException:
            self.delete(target)
            raise
        self.delete(source)

    def touch(self, fs_path, exist_ok=True) -> None:
        """Makes an empty file."""
        if self.is_exist(fs_path):
            if not exist_ok:
                raise FSFileExistsError(f"(InvalidArgument) touch: there is {fs_path} already.")
            return
        pathlib.Path(fs_path).touch()

    def is_file(self, fs_path) -> bool:
        """Is there a file?"""
        return pathlib.Path(fs_path).is_file()

    def is_dir(self, fs_path) -> bool:
        """Is there a folder?"""
        return pathlib.Path(fs_path).is_dir()

    def is_exist(self, fs_path) -> bool:
        """Is there anything?"""
        return pathlib.Path(fs_path).exists()

    def need_upload_download(self) -> bool:
        """No: this machine has them."""
        return False

    def cat(self, fs_path) -> str:
        """The text of a file."""
        return pathlib.Path(fs_path).read_text()

    def upload(self, local_path, fs_path) -> None:
        """Copies a file."""
        shutil.copyfile(local_path, fs_path)

    def upload_dir(self, local_dir, dest_dir) -> None:
        """Copies a folder."""
        shutil.copytree(local_dir, dest_dir, dirs_exist_ok=True)

    def download(self, fs_path, local_path) -> None:
        """Copies a file."""
        shutil.copyfile(fs_path, local_path)
