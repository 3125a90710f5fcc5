//! Sums of products in index notation. Operands are contracted two at a time, each pair as one batched matrix product.

use crate::ops::prelude::*;

/// An axis of an expression: a letter, or an axis that `...` stands for, counted from the right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    Letter(char),
    Dots(usize),
}

/// A tensor whose axes are named.
#[derive(Clone)]
struct Named {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// The sum of products that `equation` writes in index notation, such as `"bij,bjk->bik"`. Letters that the output lacks
/// are summed over, a letter repeated in one operand takes its diagonal, `...` stands for any number of broadcast axes,
/// and without `->` the output has `...` and then every letter that occurs once, in alphabetical order.
///
/// ```
/// # use sampan_core::{Tensor, ops::einsum::einsum};
/// let x = Tensor::new([[1i64, 2], [3, 4]]);
/// assert_eq!(einsum("ij,jk->ik", &[x.clone(), x.clone()]).to_vec::<i64>(), [7, 10, 15, 22]);
/// assert_eq!(einsum("ii", &[x]).to_vec::<i64>(), [5]);
/// ```
#[op(
    complex,
    samples = einsum_samples,
    onnx = "Einsum",
    amp = "white",
    peer = "lambda equation, operands: paddle.einsum(equation, *operands)"
)]
fn einsum(equation: &str, operands: &[Tensor]) -> Result<Tensor> {
    let (inputs, output) = parse(equation, operands)?;
    let dtype = promote_all(operands)?;
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for (labels, t) in inputs.iter().zip(operands) {
        for (&label, &n) in labels.iter().zip(t.shape()) {
            match sizes.iter_mut().find(|(l, _)| *l == label) {
                Some((_, have)) if *have == n || n == 1 => {}
                Some((_, have)) if *have == 1 => *have = n,
                Some((_, have)) => bail!("`{}` stands for an axis of {have} and for one of {n}", show(&[label])),
                None => sizes.push((label, n)),
            }
        }
    }
    let mut terms: Vec<Named> = inputs
        .into_iter()
        .zip(operands)
        .map(|(labels, t)| Named { tensor: t.cast(dtype), labels }.with_diagonals().without_ones())
        .collect();
    while terms.len() > 1 {
        let (i, j) = cheapest(&terms, &output);
        let b = terms.remove(j);
        let a = terms.remove(i);
        let needed = |l: &Label| output.contains(l) || terms.iter().any(|t| t.labels.contains(l));
        let product = a
            .sum_unless(|l| needed(l) || b.labels.contains(l))
            .times(b.sum_unless(|l| needed(l) || a.labels.contains(l)), needed);
        terms.insert(i, product);
    }
    let last = terms.remove(0).sum_unless(|l| output.contains(l));
    let kept: Vec<Label> = output.iter().copied().filter(|l| last.labels.contains(l)).collect();
    let shape: Vec<usize> = output.iter().map(|l| if last.labels.contains(l) { last.size(l) } else { 1 }).collect();
    Ok(last.arranged(&kept).reshape_to(shape))
}

fn show(labels: &[Label]) -> String {
    labels.iter().map(|l| if let Label::Letter(c) = l { c.to_string() } else { "...".into() }).collect()
}

/// The labels of every operand and of the output.
fn parse(equation: &str, operands: &[Tensor]) -> Result<(Vec<Vec<Label>>, Vec<Label>)> {
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (text.as_str(), None),
    };
    let parts: Vec<&str> = left.split(',').collect();
    ensure!(!operands.is_empty(), "needs at least one operand");
    ensure!(parts.len() == operands.len(), "`{equation}` names {} operands, got {}", parts.len(), operands.len());
    let mut inputs = Vec::new();
    let mut dots = 0;
    for (i, (part, t)) in parts.iter().zip(operands).enumerate() {
        let letters = part.replace("...", "").chars().count();
        let rest = t.ndim().checked_sub(letters);
        let Some(rest) = rest.filter(|&r| r == 0 || part.contains("...")) else {
            bail!("`{part}` names {letters} axes, operand {i} has {}", t.ndim());
        };
        dots = dots.max(rest);
        inputs.push(labels_of(part, rest, equation)?);
    }
    let output = match right {
        Some(right) => {
            let labels = labels_of(right, dots, equation)?;
            for (i, l) in labels.iter().enumerate() {
                ensure!(!labels[..i].contains(l), "`{}` occurs twice in the output of `{equation}`", show(&[*l]));
                let known = inputs.iter().flatten().any(|m| m == l);
                ensure!(known, "`{}` is in the output of `{equation}` but in no operand", show(&[*l]));
            }
            labels
        }
        None => {
            let mut once: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
            once.retain(|&c| left.matches(c).count() == 1);
            once.sort_unstable();
            (0..dots).rev().map(Label::Dots).chain(once.into_iter().map(Label::Letter)).collect()
        }
    };
    Ok((inputs, output))
}

/// The labels of one operand, whose `...` stands for `rest` axes.
fn labels_of(part: &str, rest: usize, equation: &str) -> Result<Vec<Label>> {
    let mut labels = Vec::new();
    let (before, after) = part.split_once("...").unwrap_or((part, ""));
    for (side, text) in [before, after].into_iter().enumerate() {
        for c in text.chars() {
            ensure!(c.is_ascii_alphabetic(), "`{c}` in `{equation}` is neither a letter nor part of one `...`");
            labels.push(Label::Letter(c));
        }
        if side == 0 && part.contains("...") {
            labels.extend((0..rest).rev().map(Label::Dots));
        }
    }
    Ok(labels)
}

/// The pair of terms whose product grows least over its factors: what is contracted next.
fn cheapest(terms: &[Named], output: &[Label]) -> (usize, usize) {
    let mut best = (f64::INFINITY, (0, 1));
    for i in 0..terms.len() {
        for j in i + 1..terms.len() {
            let (a, b) = (&terms[i], &terms[j]);
            let elsewhere = |l: &Label| {
                output.contains(l) || terms.iter().enumerate().any(|(k, t)| k != i && k != j && t.labels.contains(l))
            };
            let only_b = b.labels.iter().filter(|l| !a.labels.contains(l)).map(|l| (l, b));
            let all = a.labels.iter().map(|l| (l, a)).chain(only_b);
            let result: f64 = all.filter(|(l, _)| elsewhere(l)).map(|(l, t)| t.size(l) as f64).product();
            let growth = result - a.tensor.numel() as f64 - b.tensor.numel() as f64;
            if growth < best.0 {
                best = (growth, (i, j));
            }
        }
    }
    best.1
}

impl Named {
    fn size(&self, label: &Label) -> usize {
        self.labels.iter().position(|l| l == label).map_or(1, |i| self.tensor.shape()[i])
    }

    /// One axis for each label: where a label occurs twice, the diagonal.
    fn with_diagonals(mut self) -> Named {
        while let Some((i, j)) = self.repeated() {
            let rank = self.labels.len();
            let mut perm: Vec<i64> = (0..rank as i64).filter(|&a| a != i as i64 && a != j as i64).collect();
            perm.extend([i as i64, j as i64]);
            let t = self.tensor.transpose(perm);
            let (ni, nj) = (t.dim(-2), t.dim(-1));
            // An axis of 1 broadcasts along the other.
            let n = if ni == 1 { nj } else { ni };
            let lead = &t.shape()[..rank - 2];
            let square = t.expand([lead, &[n, n]].concat()).reshape_to([lead, &[n * n]].concat());
            let mut lens: Vec<i64> = lead.iter().map(|&d| d as i64).collect();
            lens.push(n as i64);
            let mut steps = vec![1i64; rank - 1];
            steps[rank - 2] = n as i64 + 1;
            self.tensor = square.view_slice(vec![0i64; rank - 1], lens, steps);
            let label = self.labels.remove(j);
            self.labels.remove(i);
            self.labels.push(label);
        }
        self
    }

    fn repeated(&self) -> Option<(usize, usize)> {
        (0..self.labels.len())
            .flat_map(|i| (i + 1..self.labels.len()).map(move |j| (i, j)))
            .find(|&(i, j)| self.labels[i] == self.labels[j])
    }

    /// Without its axes of 1: they broadcast.
    fn without_ones(mut self) -> Named {
        let keep: Vec<bool> = self.tensor.shape().iter().map(|&n| n != 1).collect();
        let mut it = keep.iter();
        self.labels.retain(|_| *it.next().expect("one flag for each label"));
        self.tensor = self.tensor.squeeze(());
        self
    }

    /// Summed over the labels that nobody needs.
    fn sum_unless(&self, needed: impl Fn(&Label) -> bool) -> Named {
        let axes: Vec<usize> = (0..self.labels.len()).filter(|&i| !needed(&self.labels[i])).collect();
        if axes.is_empty() {
            return self.clone();
        }
        let labels = self.labels.iter().copied().filter(|l| needed(l)).collect();
        Named {
            tensor: self.tensor.sum_with(axes, crate::ops::reduction::SumOpts::new().dtype(self.tensor.dtype())),
            labels,
        }
    }

    /// The tensor with its axes in the order of `labels`.
    fn arranged(&self, labels: &[Label]) -> Tensor {
        let place = |l: &Label| self.labels.iter().position(|m| m == l).expect("the label is there") as i64;
        self.tensor.transpose(labels.iter().map(place).collect::<Vec<i64>>())
    }

    fn extent(&self, labels: &[Label]) -> usize {
        labels.iter().map(|l| self.size(l)).product()
    }

    /// The product of two terms, summed over the common labels that nobody needs.
    fn times(self, b: Named, needed: impl Fn(&Label) -> bool) -> Named {
        let a = self;
        let split =
            |t: &Named, f: &dyn Fn(&Label) -> bool| t.labels.iter().copied().filter(|l| f(l)).collect::<Vec<_>>();
        let batch = split(&a, &|l| b.labels.contains(l) && needed(l));
        let summed = split(&a, &|l| b.labels.contains(l) && !needed(l));
        let rows = split(&a, &|l| !b.labels.contains(l));
        let columns = split(&b, &|l| !a.labels.contains(l));
        let (n, m, k, p) = (a.extent(&batch), a.extent(&rows), a.extent(&summed), b.extent(&columns));
        let left = a.arranged(&[&batch[..], &rows, &summed].concat());
        let product = if summed.is_empty() {
            left.reshape_to([n, m, 1]) * b.arranged(&[&batch[..], &columns].concat()).reshape_to([n, 1, p])
        } else {
            let right = b.arranged(&[&batch[..], &summed, &columns].concat());
            left.reshape_to([n, m, k]).matrix_product(&right.reshape_to([n, k, p]))
        };
        let labels = [&batch[..], &rows, &columns].concat();
        let sizes: Vec<usize> =
            labels.iter().map(|l| if a.labels.contains(l) { a.size(l) } else { b.size(l) }).collect();
        Named { tensor: product.reshape_to(sizes), labels }
    }
}

fn einsum_samples() -> Vec<Sample> {
    let wide = |shape: &[usize]| uniform(shape, 0.3, 2.0);
    vec![
        sample!["ij,jk->ik", vec![randn([2, 3]), randn([3, 2])]],
        sample!["ii", vec![randn([3, 3])]],
        sample!["iij->ji", vec![randn([2, 2, 3])]].peer("torch.einsum"),
        sample!["...ij,...jk", vec![randn([2, 1, 2, 2]), wide(&[3, 2, 2])]],
        sample!["bi,oij,bj->bo", vec![randn([2, 2]), randn([2, 2, 3]), randn([2, 3])]],
        sample!["i,j->ij", vec![randn([2]), wide(&[3])]],
        sample!["ij->", vec![randn([2, 3])]],
        sample!["ij,ij->j", vec![randn([2, 3]), wide(&[2, 3])]],
        sample!["ij,jk->ik", vec![randn([2, 1]), randn([3, 2])]].peer("torch.einsum"),
        sample!["ij,jk->ik", vec![randn([2, 0]), randn([0, 2])]].peer("torch.einsum"),
        sample!["ij,jk->ik", vec![complexes([2, 3]), complexes([3, 2])]],
    ]
}
