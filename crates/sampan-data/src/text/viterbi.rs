//! The most likely tags of sequences.

use sampan_core::{DType, Error, Result, Tensor, bail, ensure};
use sampan_macros::{class, function};
use sampan_nn::{Base, Layer, layer};

/// The position of the largest number, the first of several.
fn largest(row: &[f64]) -> usize {
    row.iter().enumerate().fold(0, |best, (i, v)| if *v > row[best] { i } else { best })
}

/// The best sequence of tags of each sequence in `potentials` `[batch, length, tags]` (how well each tag fits at each place),
/// where `transition_params` `[tags, tags]` says how well a tag (column) follows another (row) and `lengths` `[batch]` how
/// long each sequence is: the scores `[batch]`, and the tags `[batch, longest]`, 0 beyond the end. With
/// `include_bos_eos_tag` the last row of the transitions is added at the beginning, the one before it at the end. No
/// gradients.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::text::viterbi_decode;
/// let fits = Tensor::new([[[1.0f32, 0.0], [0.0, 0.5], [2.0, 0.0]]]);
/// let follows = Tensor::new([[0.0f32, -1.0], [-1.0, 0.0]]);
/// let (scores, tags) = viterbi_decode(&fits, &follows, &Tensor::new([3i64]), false)?;
/// assert_eq!((scores.to_vec::<f32>(), tags.to_vec::<i64>()), (vec![3.0], vec![0, 0, 0]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "text")]
pub fn viterbi_decode(
    potentials: &Tensor,
    transition_params: &Tensor,
    lengths: &Tensor,
    #[default(true)] include_bos_eos_tag: bool,
) -> Result<(Tensor, Tensor)> {
    let run = || -> Result<(Tensor, Tensor)> {
        let &[batch, length, tags] = potentials.shape() else {
            bail!("potentials must be [batch, length, tags], got {:?}", potentials.shape());
        };
        let least = if include_bos_eos_tag { 2 } else { 1 };
        ensure!(length > 0 && tags >= least, "there must be a place and {least} tags, got {:?}", potentials.shape());
        let (moves, wanted) = (transition_params.shape(), [tags, tags]);
        ensure!(moves == wanted, "transition_params must be {wanted:?}, got {moves:?}");
        ensure!(potentials.dtype().is_float(), "potentials must be float, got {}", potentials.dtype());
        ensure!(lengths.shape() == [batch], "lengths must have shape [{batch}], got {:?}", lengths.shape());
        let counts = lengths.detach().try_cast(DType::Int64)?.try_to_vec::<i64>()?;
        ensure!(counts.iter().all(|n| (0..=length as i64).contains(n)), "lengths must lie in 0..={length}");
        let (fits, follows) = (potentials.to_f64_vec(), transition_params.to_f64_vec());
        let edge = |from_end: usize| &follows[(tags - from_end) * tags..][..tags];
        let longest = counts.iter().copied().max().unwrap_or(0) as usize;
        let (mut scores, mut paths) = (Vec::with_capacity(batch), vec![0i64; batch * longest]);
        for (b, &count) in counts.iter().enumerate() {
            let place = |i: usize| &fits[(b * length + i) * tags..][..tags];
            let mut best = place(0).to_vec();
            let add = |to: &mut [f64], row: &[f64]| to.iter_mut().zip(row).for_each(|(a, b)| *a += b);
            if include_bos_eos_tag {
                add(&mut best, edge(1));
            }
            let mut came_from: Vec<Vec<usize>> = Vec::new();
            for i in 1..count as usize {
                let into = |to: usize| (0..tags).map(|from| best[from] + follows[from * tags + to]).collect::<Vec<_>>();
                let (from, mut next): (Vec<usize>, Vec<f64>) =
                    (0..tags).map(into).map(|row| (largest(&row), row[largest(&row)])).unzip();
                add(&mut next, place(i));
                came_from.push(from);
                best = next;
            }
            if include_bos_eos_tag && count > 0 {
                add(&mut best, edge(2));
            }
            let mut tag = largest(&best);
            scores.push(best[tag]);
            if count > 0 {
                let path = &mut paths[b * longest..][..count as usize];
                for (i, slot) in path.iter_mut().enumerate().rev() {
                    *slot = tag as i64;
                    if i > 0 {
                        tag = came_from[i - 1][tag];
                    }
                }
            }
        }
        let scores = Tensor::try_from_slice(&scores, [batch])?.try_cast(potentials.dtype())?;
        Ok((scores, Tensor::try_from_slice(&paths, [batch, longest])?))
    };
    run().map_err(|e: Error| e.in_op("viterbi_decode"))
}

/// [`viterbi_decode`] with the transitions of its own.
#[derive(Layer)]
pub struct ViterbiDecoder {
    base: Base,
    #[layer(skip)]
    transitions: Tensor,
    #[layer(skip)]
    include_bos_eos_tag: bool,
}

#[class(module = "text", object = layer::object)]
impl ViterbiDecoder {
    /// [`viterbi_decode`] as a layer. Takes `potentials` and `lengths`, gives scores and tags.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::text::ViterbiDecoder;
    /// use sampan_nn::Layer;
    /// let decoder = ViterbiDecoder::new(&Tensor::zeros([4, 4], DType::Float32));
    /// let found = decoder.call_all(&[Tensor::ones([2, 3, 4], DType::Float32), Tensor::new([3i64, 1])])?;
    /// assert_eq!(found[1].shape(), [2, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(transitions: &Tensor, #[opt(true)] include_bos_eos_tag: bool) -> Result<ViterbiDecoder> {
        let base = Base::new("viterbi_decoder");
        Ok(ViterbiDecoder { base, transitions: transitions.clone(), include_bos_eos_tag })
    }
}

impl Layer for ViterbiDecoder {
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(Error::invalid("takes potentials and lengths, got one input").in_op("ViterbiDecoder"))
    }

    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [potentials, lengths] = inputs else { bail!("takes potentials and lengths, got {} inputs", inputs.len()) };
        let (scores, tags) = viterbi_decode(potentials, &self.transitions, lengths, self.include_bos_eos_tag)?;
        Ok(vec![scores, tags])
    }
}
