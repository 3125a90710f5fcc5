"""16 · A small Transformer that writes.

Letters become numbers, numbers become vectors, and each place looks back at those before it (the mask hides what comes
after) to guess the next letter. After some hundred steps it writes the text it was shown, letter by letter, from a few
to begin with.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan import nn
from sampan.io import DataLoader, TensorDataset

TEXT = (
    "a sampan is a small flat boat with a simple sail. it needs no harbour and no crew. one person can row it up the "
    "river, load it with rice and tea, and sail it home with the evening wind. it is light and quick to turn, and what "
    "it carries arrives dry. "
)
LENGTH, WIDTH = 32, 64


class Writer(nn.Layer):
    def __init__(self, letters):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, normalize_before=True)
        self.letters = nn.Embedding(letters, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(WIDTH))
        self.out = nn.Linear(WIDTH, letters)

    def forward(self, text):
        """Numbers of letters `[batch, length]` to scores of the next letter at each place."""
        length = text.shape[1]
        x = self.letters(text) + self.places(sampan.arange(length))
        # What is added to the attention's scores: nothing up to here, minus infinity after.
        mask = sampan.full([length, length], float("-inf")).triu(1)
        return self.out(self.encoder(x, mask))


@sampan.no_grad()
def write(net, start, count):
    """Goes on with a text, always by the most probable letter."""
    net.eval()
    text = [alphabet.index(letter) for letter in start]
    for _ in range(count):
        scores = net(sampan.to_tensor([text[-LENGTH:]]))
        text.append(scores[0, -1].argmax().item())
    return "".join(alphabet[i] for i in text)


sampan.seed(0)
alphabet = sorted(set(TEXT))
numbers = [alphabet.index(letter) for letter in TEXT]
print(f"{len(numbers)} letters of {len(alphabet)} kinds")

# A sample is a piece of the text and the same piece one letter later.
pieces = sampan.to_tensor([numbers[i : i + LENGTH] for i in range(len(numbers) - LENGTH + 1)])
data = DataLoader(TensorDataset([pieces[:-1], pieces[1:]]), batch_size=32, shuffle=True)
net = Writer(len(alphabet))
optimizer = sampan.optimizer.AdamW(learning_rate=0.003, parameters=net.parameters())
for epoch in range(common.full_or_quick(30, 2)):
    loss = common.train_epoch(
        net, optimizer, data, lambda scores, following: F.cross_entropy(scores, following.unsqueeze(-1))
    )
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {loss:.4f}")
print("written:", write(net, "one person can ", 60))
