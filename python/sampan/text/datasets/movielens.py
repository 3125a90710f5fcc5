"""Who liked which film: MovieLens 1M."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass

from ...io import Dataset
from ...io.files import check_mode, obtain
from ._words import arrays

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
age_table = [1, 18, 25, 35, 45, 50, 56]


@dataclass
class MovieInfo:
    """A film."""

    index: int
    categories: list[str]
    title: str

    def value(self, categories_dict: dict, movie_title_dict: dict) -> list:
        """Its number, and the numbers of its categories and of the words of its title."""
        words = [movie_title_dict[word.lower()] for word in self.title.split()]
        return [[self.index], [categories_dict[c] for c in self.categories], words]


@dataclass
class UserInfo:
    """Somebody who rates films; `age` is the number of an age in `age_table`."""

    index: int
    is_male: bool
    age: int
    job_id: int

    def value(self) -> list:
        """Number, sex (1 for women), age and job."""
        return [[self.index], [0 if self.is_male else 1], [self.age], [self.job_id]]


class Movielens(Dataset):
    """Ratings: number, sex, age and job of a user; number, categories and title of a film; and the rating from -3 to 5.

    Args:
        data_file: the archive `ml-1m.zip`.
        mode: `'train'` or `'test'`.
        test_ratio: share of the ratings that is the test part.
        rand_seed: decides which.
        download: download the archive unless it lies in `~/.cache/paddle/dataset/sentiment`, where Paddle puts it.
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        test_ratio: float = 0.1,
        rand_seed: int = 0,
        download: bool = True,
    ) -> None:
        import numpy as np

        self.mode = check_mode("Movielens", mode)
        self.test_ratio, self.rand_seed = test_ratio, rand_seed
        self.data_file = obtain("Movielens", "data_file", data_file, URL, MD5, "sentiment", download)
        self.movie_info: dict[int, MovieInfo] = {}
        self.user_info: dict[int, UserInfo] = {}
        self.movie_title_dict: dict[str, int] = {}
        self.categories_dict: dict[str, int] = {}
        self.data: list = []
        draw = np.random.RandomState(rand_seed).random_sample
        with zipfile.ZipFile(self.data_file) as archive:
            for movie, title, categories in _rows(archive, "movies"):
                self._add_movie(int(movie), title, categories.split("|"))
            for user, gender, age, job, _ in _rows(archive, "users"):
                self.user_info[int(user)] = UserInfo(int(user), gender == "M", age_table.index(int(age)), int(job))
            for user, movie, rating, _ in _rows(archive, "ratings"):
                if (draw() < test_ratio) == (self.mode == "test"):
                    film = self.movie_info[int(movie)].value(self.categories_dict, self.movie_title_dict)
                    self.data.append([*self.user_info[int(user)].value(), *film, [float(rating) * 2 - 5.0]])

    def _add_movie(self, index: int, title: str, categories: list[str]) -> None:
        # The year is no part of the title.
        title = re.sub(r"\(\d+\)$", "", title)
        self.movie_info[index] = MovieInfo(index, categories, title)
        for known, words in ((self.categories_dict, categories), (self.movie_title_dict, title.lower().split())):
            for word in words:
                known.setdefault(word, len(known))

    def __getitem__(self, idx: int):
        return arrays(*self.data[idx])

    def __len__(self) -> int:
        return len(self.data)


def _rows(archive: zipfile.ZipFile, name: str):
    with archive.open(f"ml-1m/{name}.dat") as file:
        for line in file:
            yield line.decode("latin-1").strip().split("::")
