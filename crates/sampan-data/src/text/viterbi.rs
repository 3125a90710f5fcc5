//! The best sequence of tags.

use sampan_core::{DType, Error, Result, Tensor, ensure};

/// The sequence of tags with the highest score, and the score: scores `[B]` and paths `[B, T]`.
///
/// `potentials` `[B, T, N]` holds the score of each tag at each place, `transition_params` `[N, N]` that of one tag after
/// another, `lengths` `[B]` how many places count; a path is 0 after its end and as long as the longest of `lengths`.
/// With `include_bos_eos_tag` the last row of the transitions is the one from the start and the row before it the one to
/// the end.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::text::viterbi_decode;
/// let potentials = Tensor::new([[[1.0f32, 0.0], [0.0, 2.0], [9.0, 9.0]]]);
/// let (scores, paths) = viterbi_decode(&potentials, &Tensor::new([[0.0f32, 0.5], [0.0, 0.0]]), &Tensor::new([2i64]), false)?;
/// assert_eq!((scores.to_vec::<f32>(), paths.to_vec::<i64>()), (vec![3.5], vec![0, 1]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn viterbi_decode(
    potentials: &Tensor,
    transition_params: &Tensor,
    lengths: &Tensor,
    include_bos_eos_tag: bool,
) -> Result<(Tensor, Tensor)> {
    decode(potentials, transition_params, lengths, include_bos_eos_tag).map_err(|e: Error| e.in_op("viterbi_decode"))
}

fn decode(potentials: &Tensor, transitions: &Tensor, lengths: &Tensor, bounds: bool) -> Result<(Tensor, Tensor)> {
    ensure!(potentials.ndim() == 3, "potentials must have the axes [B, T, N], got {:?}", potentials.shape());
    let &[batch, steps, tags] = potentials.shape() else { unreachable!("three axes") };
    ensure!(
        transitions.shape() == [tags, tags],
        "transition_params must have shape [{tags}, {tags}], got {:?}",
        transitions.shape()
    );
    ensure!(lengths.shape() == [batch], "lengths must have shape [{batch}], got {:?}", lengths.shape());
    ensure!(!bounds || tags >= 2, "include_bos_eos_tag needs two tags of its own, there are {tags}");
    let lengths = lengths.try_to_ints()?;
    if let Some(bad) = lengths.iter().find(|&&n| n < 0 || n as usize > steps) {
        return Err(Error::invalid(format!("lengths must lie in 0..={steps}, got {bad}")));
    }
    let (scores, moves) = (potentials.to_f64_vec(), transitions.to_f64_vec());
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let (start, stop) = (tags.wrapping_sub(1), tags.wrapping_sub(2));
    let (mut best, mut paths) = (Vec::with_capacity(batch), vec![0i64; batch * longest]);
    for (b, &length) in lengths.iter().enumerate() {
        let length = length as usize;
        let at = |t: usize| &scores[(b * steps + t) * tags..][..tags];
        let row = |i: usize| &moves[i * tags..][..tags];
        let add = |a: &mut Vec<f64>, more: &[f64]| a.iter_mut().zip(more).for_each(|(a, m)| *a += m);
        if length == 0 || tags == 0 {
            best.push(0.0);
            continue;
        }
        let mut alpha = at(0).to_vec();
        if bounds {
            add(&mut alpha, row(start));
        }
        // From which tag the best way to each tag comes.
        let mut from: Vec<Vec<usize>> = Vec::with_capacity(length - 1);
        for t in 1..length {
            let ways = |j: usize| argmax((0..tags).map(|i| alpha[i] + moves[i * tags + j]));
            let (come, mut next): (Vec<usize>, Vec<f64>) = (0..tags).map(ways).unzip();
            add(&mut next, at(t));
            from.push(come);
            alpha = next;
        }
        if bounds {
            add(&mut alpha, row(stop));
        }
        let (mut tag, score) = argmax(alpha.iter().copied());
        best.push(score);
        for t in (0..length).rev() {
            paths[b * longest + t] = tag as i64;
            tag = if t > 0 { from[t - 1][tag] } else { tag };
        }
    }
    let dtype = if potentials.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let best = Tensor::try_from_slice(&best, [batch])?.try_cast(dtype)?;
    Ok((best, Tensor::try_from_slice(&paths, [batch, longest])?))
}

/// Where the largest value stands, the first of equal ones, and the value.
fn argmax(values: impl Iterator<Item = f64>) -> (usize, f64) {
    values.enumerate().fold((0, f64::NEG_INFINITY), |best, (i, v)| if v > best.1 { (i, v) } else { best })
}
