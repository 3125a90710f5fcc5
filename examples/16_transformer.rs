//! 16 · A small Transformer that writes.
//!
//! Letters become numbers, numbers become vectors, and each place looks back at those before it (the mask hides what comes
//! after) to guess the next letter. After some hundred steps it writes the text it was shown, letter by letter, from a few
//! to begin with.

mod common;
use sampan::prelude::*;

const TEXT: &str = "a sampan is a small flat boat with a simple sail. it needs no harbour and no crew. one person can \
                    row it up the river, load it with rice and tea, and sail it home with the evening wind. it is light \
                    and quick to turn, and what it carries arrives dry. ";
const LENGTH: usize = 32;
const WIDTH: usize = 64;

#[derive(Layer)]
struct Writer {
    letters: Embedding,
    places: Embedding,
    encoder: TransformerEncoder,
    out: Linear,
}

impl Writer {
    fn new(letters: usize) -> Writer {
        let layer = TransformerEncoderLayer::with(WIDTH, 4, 2 * WIDTH, |o| o.dropout(0.0).normalize_before(true));
        Writer {
            letters: Embedding::new(letters, WIDTH),
            places: Embedding::new(LENGTH, WIDTH),
            encoder: TransformerEncoder::with(layer, 2, |o| o.norm(LayerNorm::new(WIDTH))),
            out: Linear::new(WIDTH, letters),
        }
    }
}

impl Layer for Writer {
    /// Numbers of letters `[batch, length]` to scores of the next letter at each place.
    fn forward(&self, text: &Tensor) -> Result<Tensor> {
        let length = text.dim(1);
        let places = Tensor::arange(0, length as i64, 1).apply(&self.places)?;
        let x = text.apply(&self.letters)? + places;
        // What is added to the attention's scores: nothing up to here, minus infinity after.
        let mask = Tensor::full([length, length], f64::NEG_INFINITY, DType::Float32).triu(1);
        self.encoder.run(&x, Some(&mask), None)?.0.apply(&self.out)
    }
}

/// Goes on with a text, always by the most probable letter.
fn write(net: &Writer, alphabet: &[char], start: &str, count: usize) -> Result<String> {
    net.eval();
    let mut text: Vec<i64> = encode(alphabet, start);
    for _ in 0..count {
        let window = &text[text.len().saturating_sub(LENGTH)..];
        let scores = no_grad(|| net.call(&Tensor::from_vec(window.to_vec(), [1, window.len()])))?;
        text.push(scores.get((0, -1)).argmax(-1).item().to_i64());
    }
    Ok(text.iter().map(|&i| alphabet[i as usize]).collect())
}

fn encode(alphabet: &[char], text: &str) -> Vec<i64> {
    text.chars().map(|c| alphabet.iter().position(|a| *a == c).expect("a letter of the text") as i64).collect()
}

fn main() -> Result<()> {
    random::seed(0);
    let mut alphabet: Vec<char> = TEXT.chars().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let numbers = encode(&alphabet, TEXT);
    println!("{} letters of {} kinds", numbers.len(), alphabet.len());

    // A sample is a piece of the text and the same piece one letter later.
    let data = FnDataset::new(numbers.len() - LENGTH, move |i| {
        let piece = |at: usize| Tensor::from_vec(numbers[at..at + LENGTH].to_vec(), [LENGTH]);
        Ok(vec![piece(i), piece(i + 1)])
    });
    let data = DataLoader::new(data, 32, true)?;
    let net = Writer::new(alphabet.len());
    let mut opt = AdamW::new(0.003, net.parameters());
    for epoch in 0..common::full_or_quick(30, 2) {
        let loss =
            common::train_epoch(&net, &mut opt, &data, |scores, next| scores.cross_entropy(&next.unsqueeze(-1)))?;
        if epoch % 5 == 0 {
            println!("epoch {epoch}: loss {loss:.4}");
        }
    }
    println!("written: {}", write(&net, &alphabet, "one person can ", 60)?);
    Ok(())
}
