//! 17 · An LSTM that reads: is a review kind or not?
//!
//! Sentences have different lengths, so short ones are filled up and the LSTM is told where each ends. Words are numbered by
//! a vocabulary; one it does not know is a word too. "not" turns a word around, which no counting of words can see: order
//! matters, and that is what a recurrent network remembers.

mod common;
use sampan::prelude::*;
use std::collections::BTreeMap;

const KIND: [&str; 6] = ["good", "great", "lovely", "funny", "clever", "warm"];
const UNKIND: [&str; 6] = ["bad", "dull", "boring", "weak", "cold", "silly"];
const THINGS: [&str; 6] = ["film", "story", "acting", "music", "ending", "book"];

/// A number from 0 to `n - 1`, from the one generator of the program.
fn pick(n: usize) -> usize {
    randint(0, n as i64, [1]).item().to_i64() as usize
}

/// A sentence and whether it is kind.
fn review() -> (Vec<&'static str>, bool) {
    let (kind, turned) = (pick(2) == 1, pick(2) == 1);
    let mut words = vec!["the", THINGS[pick(6)], "was"];
    if turned {
        words.push("not");
    }
    (0..pick(3)).for_each(|_| words.push("very"));
    words.push(if kind { KIND[pick(6)] } else { UNKIND[pick(6)] });
    (0..pick(4)).for_each(|_| words.extend(["i", "think"]));
    (words, kind != turned)
}

/// Words by number: 0 fills up, 1 is any word not seen before.
struct Vocabulary(BTreeMap<&'static str, i64>);

impl Vocabulary {
    fn new(sentences: &[(Vec<&'static str>, bool)]) -> Vocabulary {
        let mut numbers = BTreeMap::new();
        for word in sentences.iter().flat_map(|(words, _)| words) {
            let next = numbers.len() as i64 + 2;
            numbers.entry(*word).or_insert(next);
        }
        Vocabulary(numbers)
    }

    /// Numbers of equal count, and how many of them are words.
    fn encode(&self, words: &[&str], length: usize) -> (Tensor, Tensor) {
        let mut numbers: Vec<i64> = words.iter().map(|w| self.0.get(w).copied().unwrap_or(1)).collect();
        numbers.resize(length, 0);
        (Tensor::from_vec(numbers, [length]), Tensor::new(words.len() as i64))
    }
}

#[derive(Layer)]
struct Reader {
    words: Embedding,
    lstm: LSTM,
    out: Linear,
}

impl Reader {
    /// The scores of "unkind" and "kind" for sentences `[batch, length]` of the given lengths.
    fn read(&self, sentences: &Tensor, lengths: &Tensor) -> Result<Tensor> {
        let (_, (last, _)) = self.lstm.run(&sentences.apply(&self.words)?, None, Some(lengths))?;
        last.get(-1).apply(&self.out)
    }
}

impl Layer for Reader {
    fn forward(&self, sentences: &Tensor) -> Result<Tensor> {
        let lengths = Tensor::full([sentences.dim(0)], sentences.dim(1) as i64, DType::Int64);
        self.read(sentences, &lengths)
    }
}

fn main() -> Result<()> {
    random::seed(0);
    let count = common::limit().unwrap_or(4000);
    let reviews: Vec<_> = (0..count + count / 4).map(|_| review()).collect();
    let vocabulary = Vocabulary::new(&reviews[..count]);
    let length = reviews.iter().map(|(words, _)| words.len()).max().unwrap_or(0);
    println!("\"{}\" is kind: {}", reviews[0].0.join(" "), reviews[0].1);
    println!("{} words, sentences of up to {length}", vocabulary.0.len());

    let columns = |reviews: &[(Vec<&'static str>, bool)]| -> Result<TensorDataset> {
        let (words, lengths): (Vec<_>, Vec<_>) = reviews.iter().map(|(w, _)| vocabulary.encode(w, length)).unzip();
        let labels: Vec<i64> = reviews.iter().map(|(_, kind)| i64::from(*kind)).collect();
        TensorDataset::new(vec![stack(&words, 0), stack(&lengths, 0), Tensor::from_vec(labels, [reviews.len()])])
    };
    let train = DataLoader::new(columns(&reviews[..count])?, 50, true)?;
    let test = DataLoader::new(columns(&reviews[count..])?, 250, false)?;

    let words = Embedding::with(vocabulary.0.len() + 2, 16, |o| o.padding_idx(0));
    let net = Reader { words, lstm: LSTM::new(16, 32), out: Linear::new(32, 2) };
    let mut opt = Adam::new(0.01, net.parameters());
    for epoch in 0..common::full_or_quick(5, 2) {
        for batch in &train {
            let [words, lengths, labels] = fields(batch?)?;
            net.read(&words, &lengths)?.cross_entropy(&labels).backward();
            opt.step()?;
            opt.clear_grad();
        }
        let mut accuracy = Accuracy::new();
        for batch in &test {
            let [words, lengths, labels] = fields(batch?)?;
            let hits = accuracy.compute(&[no_grad(|| net.read(&words, &lengths))?], &[labels])?;
            accuracy.update(&hits)?;
        }
        println!("epoch {epoch}: test accuracy {:.1} %", 100.0 * accuracy.accumulate()[0]);
    }
    for text in ["the film was good", "the film was not good", "the hovercraft was very dull i think"] {
        let (words, lengths) = vocabulary.encode(&text.split(' ').collect::<Vec<_>>(), length);
        let scores = net.read(&words.unsqueeze(0), &lengths.unsqueeze(0))?;
        println!("\"{text}\": kind with {:.1} %", 100.0 * scores.softmax(-1).get((0, 1)).to_f64());
    }
    Ok(())
}
