"""Sets of texts and tables from files, and the best sequence of tags. The numbers are those of Paddle 3.3.1."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

import sampan
from sampan import text


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            data = data if isinstance(data, bytes) else data.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return str(path)


def samples(data):
    return [[field.tolist() for field in data[i]] for i in range(len(data))]


def test_housing(tmp_path):
    table = np.arange(50 * 14).reshape(50, 14) % 97
    np.savetxt(tmp_path / "h.data", table, fmt="%d")
    train, test = (text.UCIHousing(str(tmp_path / "h.data"), mode) for mode in ("train", "test"))
    assert (len(train), len(test)) == (40, 10)
    features, price = train[3]
    expected = (table[3] - table.mean(0)) / (table.max(0) - table.min(0))
    assert features.dtype == price.dtype == np.float32 and price.tolist() == [table[3, 13]]
    np.testing.assert_allclose(features, expected[:13], rtol=1e-6)
    x, y = next(iter(sampan.io.DataLoader(test, batch_size=10)))
    assert x.shape == [10, 13] and y.numpy()[:, 0].tolist() == table[40:, 13].tolist()


def test_imikolov(tmp_path):
    texts = {"train": "the cat sat <unk>\nthe dog sat\n", "valid": "a cat ran\n", "test": "the cat ran far\n"}
    path = archive(tmp_path / "p.tgz", {f"./simple-examples/data/ptb.{k}.txt": v for k, v in texts.items()})
    grams = text.Imikolov(path, window_size=2, min_word_freq=0)
    assert grams.word_idx[b"the"] == 4 and grams.word_idx["<unk>"] == 9
    assert samples(grams) == [[1, 4], [4, 2], [2, 3], [3, 5], [5, 0], [1, 4], [4, 7], [7, 3], [3, 0]]
    whole = text.Imikolov(path, "SEQ", mode="test", min_word_freq=0)
    assert samples(whole) == [[[1, 4, 2, 8, 9], [4, 2, 8, 9, 0]]]
    assert len(text.Imikolov(path, "SEQ", window_size=4, mode="test", min_word_freq=0)) == 0
    with pytest.raises(ValueError, match="needs a window_size"):
        text.Imikolov(path)


def test_imdb(tmp_path):
    names = ("train/pos/0.txt", "train/neg/0.txt", "test/pos/1.txt")
    texts = ("good, good film!\n", "bad film", "fine film")
    path = archive(tmp_path / "i.tgz", {f"aclImdb/{n}": t for n, t in zip(names, texts)})
    train = text.Imdb(path, cutoff=0)
    assert samples(train) == [[[1, 1, 0], [0]], [[2, 0], [1]]] and train.word_idx[b"film"] == 0
    assert samples(text.Imdb(path, "test", cutoff=1)) == [[[2, 0], [0]]]
    with pytest.raises(ValueError, match="holds no reviews"):
        text.Imdb(archive(tmp_path / "e.tgz", {}))


def test_translations(tmp_path):
    files = {
        "w/src.dict": "<s>\n<e>\n<unk>\na\nb\n",
        "w/trg.dict": "<s>\n<e>\n<unk>\nc\nd\n",
        "w/train/train": "a b x\tc d\nbroken\n",
    }
    data = text.WMT14(archive(tmp_path / "a.tgz", files), dict_size=5)
    assert samples(data) == [[[0, 3, 4, 2, 1], [0, 3, 4], [3, 4, 1]]]
    assert data.get_dict()[1]["d"] == 4 and data.get_dict(True)[0][3] == "a"
    files = {"wmt16/train": "a b a\tc d\nb a\td z\n", "wmt16/test": "q a\td\n"}
    path = archive(tmp_path / "b.tgz", files)
    data = text.WMT16(path, "test", 5, 5)
    assert samples(data) == [[[0, 2, 3, 1], [0, 3], [3, 1]]] and data.get_dict("de", True)[3] == "d"
    assert samples(text.WMT16(path, "test", 5, 5, lang="de"))[0][0] == [0, 3, 1]
    with pytest.raises(ValueError, match="dict_size must be positive"):
        text.WMT14(path)


def test_ratings(tmp_path):
    path = str(tmp_path / "m.zip")
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("ml-1m/movies.dat", "1::Toy Story (1995)::Animation|Comedy\n2::Heat (1995)::Action\n")
        package.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        rows = (f"{1 + i % 2}::{1 + i // 2 % 2}::{1 + i % 5}::9\n" for i in range(30))
        package.writestr("ml-1m/ratings.dat", "".join(rows))
    train, test = text.Movielens(path), text.Movielens(path, mode="test")
    assert (len(train), len(test)) == (27, 3) and test[0][-1].tolist() == [5.0]
    assert samples(train)[:2] == [
        [[1], [1], [0], [10], [1], [0, 1], [0, 1], [-3.0]],
        [[2], [0], [6], [16], [1], [0, 1], [0, 1], [-1.0]],
    ]


def test_roles(tmp_path):
    words = "The\ncat\nsaw\na\ndog\nrun\n\nStop\n.\n\n"
    props = "- (A0* *\n- *) *\nsee (V*) *\n- (A1* (A0*\n- * *)\nrun *) (V*)\n\nstop (V*)\n- *\n\n"
    base = "conll05st-release/test.wsj/"
    names = (base + "words/test.wsj.words.gz", base + "props/test.wsj.props.gz")
    path = archive(tmp_path / "c.tgz", {n: gzip.compress(t.encode()) for n, t in zip(names, (words, props))})
    lists = {"w": "<unk>\nthe\ncat\nsaw\na\ndog\nrun\nbos\neos\n", "v": "see\nrun\nstop\n", "t": "B-A0\nI-A0\nB-A1\nB-V\nO\n"}
    for name, lines in {**lists, "e": ""}.items():
        (tmp_path / name).write_text(lines)
    data = text.Conll05st(path, *(str(tmp_path / name) for name in "wvte"))
    assert data.labels[0] == ["B-A0", "I-A0", "B-V", "B-A1", "I-A1", "I-A1"] and data.predicates == ["see", "run", "stop"]
    assert samples(data)[2] == [[0, 0], [7, 7], [7, 7], [0, 0], [0, 0], [8, 8], [2, 2], [1, 1], [4, 6]]
    assert samples(data)[1][7] == [0, 0, 0, 1, 1, 1] and data.get_dict()[2]["O"] == 6


def test_viterbi():
    draw = np.random.RandomState(1).randn
    potentials, transitions = (sampan.to_tensor(draw(*s).astype("float32")) for s in ((3, 5, 4), (4, 4)))
    lengths = sampan.to_tensor([3, 5, 1])
    scores, paths = text.viterbi_decode(potentials, transitions, lengths)
    np.testing.assert_allclose(scores.numpy(), [8.73231, 9.8011, 2.15378], rtol=1e-5)
    assert paths.tolist() == [[0, 2, 0, 0, 0], [2, 0, 1, 2, 0], [0, 0, 0, 0, 0]]
    decoder = text.ViterbiDecoder(transitions, include_bos_eos_tag=False)
    assert decoder(potentials, sampan.to_tensor([2, 1, 1]))[1].shape == [3, 2]
    with pytest.raises(ValueError, match=r"lengths must lie in 0..=5, got 6"):
        text.viterbi_decode(potentials, transitions, sampan.to_tensor([6, 1, 1]))
    with pytest.raises(ValueError, match=r"transition_params must have shape \[4, 4\]"):
        text.viterbi_decode(potentials, transitions[:3], lengths)
