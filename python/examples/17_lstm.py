"""17 · An LSTM that reads: is a review kind or not?

Sentences have different lengths, so short ones are filled up and the LSTM is told where each ends. Words are numbered
by a vocabulary; one it does not know is a word too. "not" turns a word around, which no counting of words can see:
order matters, and that is what a recurrent network remembers.
"""

import random

import common

import sampan
import sampan.nn.functional as F
from sampan import nn
from sampan.io import DataLoader, TensorDataset
from sampan.metric import Accuracy

KIND = "good great lovely funny clever warm".split()
UNKIND = "bad dull boring weak cold silly".split()
THINGS = "film story acting music ending book".split()


def review():
    """A sentence and whether it is kind."""
    kind, turned = random.random() < 0.5, random.random() < 0.5
    words = ["the", random.choice(THINGS), "was"] + ["not"] * turned + ["very"] * random.randrange(3)
    words += [random.choice(KIND if kind else UNKIND)] + ["i", "think"] * random.randrange(4)
    return words, kind != turned


def encode(words):
    """Numbers of equal count, and how many of them are words: 0 fills up, 1 is any word not seen before."""
    numbers = [vocabulary.get(word, 1) for word in words]
    return numbers + [0] * (length - len(numbers)), len(words)


class Reader(nn.Layer):
    def __init__(self, words):
        super().__init__()
        self.words = nn.Embedding(words, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, sentences, lengths):
        """The scores of "unkind" and "kind" for sentences `[batch, length]` of the given lengths."""
        _, (last, _) = self.lstm(self.words(sentences), sequence_length=lengths)
        return self.out(last[-1])


def batches(reviews, size, shuffle):
    sentences, lengths = zip(*(encode(words) for words, _ in reviews))
    columns = [sentences, lengths, [int(kind) for _, kind in reviews]]
    return DataLoader(TensorDataset([sampan.to_tensor(list(c)) for c in columns]), batch_size=size, shuffle=shuffle)


sampan.seed(0)
random.seed(0)
count = common.limit() or 4000
reviews = [review() for _ in range(count + count // 4)]
vocabulary = {}
for words, _ in reviews[:count]:
    for word in words:
        vocabulary.setdefault(word, len(vocabulary) + 2)
length = max(len(words) for words, _ in reviews)
print(f'"{" ".join(reviews[0][0])}" is kind: {reviews[0][1]}')
print(f"{len(vocabulary)} words, sentences of up to {length}")

train, test = batches(reviews[:count], 50, True), batches(reviews[count:], 250, False)
net = Reader(len(vocabulary) + 2)
optimizer = sampan.optimizer.Adam(learning_rate=0.01, parameters=net.parameters())
for epoch in range(common.full_or_quick(5, 2)):
    for sentences, lengths, labels in train:
        F.cross_entropy(net(sentences, lengths), labels).backward()
        optimizer.step()
        optimizer.clear_grad()
    accuracy = Accuracy()
    with sampan.no_grad():
        for sentences, lengths, labels in test:
            accuracy.update(accuracy.compute(net(sentences, lengths), labels))
    print(f"epoch {epoch}: test accuracy {100 * accuracy.accumulate():.1f} %")

for text in ("the film was good", "the film was not good", "the hovercraft was very dull i think"):
    sentence, size = encode(text.split())
    scores = net(sampan.to_tensor([sentence]), sampan.to_tensor([size]))
    print(f'"{text}": kind with {100 * F.softmax(scores)[0, 1].item():.1f} %')
