//! Choosing tokens: sampling from the most probable, and reading the sequences of a beam search.

use crate::ops::prelude::*;
use crate::ops::sorting::TopkOpts;
use sampan_kernels::index::gather_tree as gather_tree_kernel;
use sampan_kernels::rng;

/// The sequences that end in each beam, from the tokens `ids` and the beams `parents` they continue, both
/// `[time, batch, beam]`.
///
/// ```
/// # use sampan_core::Tensor;
/// let (ids, parents) = (Tensor::new([[[2i64, 5]], [[3, 9]]]), Tensor::new([[[0i64, 0]], [[1, 0]]]));
/// assert_eq!(ids.gather_tree(&parents).to_vec::<i64>(), [5, 2, 3, 9]);
/// ```
#[op(non_diff, module = "nn.functional", samples = tree_samples)]
fn gather_tree(cx: &Cx, ids: &Tensor, parents: &Tensor) -> Result<Tensor> {
    let &[times, batch, beams] = ids.shape() else {
        bail!("ids must have the axes time, batch, beam; got shape {:?}", ids.shape())
    };
    ensure!(parents.shape() == ids.shape(), "parents have shape {:?}, ids have {:?}", parents.shape(), ids.shape());
    for (name, t) in [("ids", ids), ("parents", parents)] {
        if !t.dtype().is_int() {
            return Err(Error::dtype(format!("{name} must be integers, got {}", t.dtype())));
        }
    }
    let out = cx.out(ids.shape(), ids.dtype())?;
    cx.cpu(|| {
        let parents = parents.try_cast(DType::Int64)?.try_to_vec::<i64>()?;
        let ids = ids.contiguous();
        let (extents, mut out) = ((times, batch, beams), out.values_mut());
        gather_tree_kernel(ids.values().slice(), &parents, extents, out.slice()).map_err(|e| {
            let (t, n, from) = (e.position / beams / batch, e.position / beams % batch, e.position % beams);
            Error::invalid(format!("parent {} at [{t}, {n}, {from}] is none of {beams} beams", e.value))
        })
    })?;
    Ok(out)
}

/// One token for each row of probabilities `x`, drawn from its most probable ones, whose sum reaches `ps`: the
/// probability and the token, both `[rows, 1]`; with `return_top` also the `k` largest probabilities and their tokens.
///
/// The mode "truncated" counts of the least probable token only what is needed to reach `ps`, "non-truncated" all of it.
/// Tokens less probable than `threshold` are left out, unless it is the most probable one. A `seed` of 0 or more, or a
/// row's own in `topp_seed`, gives the same draw every time.
///
/// ```
/// # use sampan_core::{Tensor, ops::decoding::TopPSamplingOpts};
/// let x = Tensor::new([[0.1f32, 0.7, 0.2]]);
/// let out = x.top_p_sampling_with(&Tensor::new([0.5f32]), TopPSamplingOpts::new().seed(1)).0;
/// assert_eq!((out[0].to_vec::<f32>(), out[1].to_vec::<i64>()), (vec![0.7], vec![1]));
/// ```
#[op(random, non_diff, samples = top_p_samples, peer = "none: random", results("scores", "ids", "topk_scores", "topk_ids"))]
fn top_p_sampling(
    cx: &Cx,
    x: &Tensor,
    ps: &Tensor,
    #[opt(None)] threshold: Option<&Tensor>,
    #[opt(None)] topp_seed: Option<&Tensor>,
    #[opt(-1)] seed: i64,
    #[opt(0)] k: i64,
    #[opt("truncated")] mode: &str,
    #[opt(false)] return_top: bool,
) -> Result<Varying> {
    let &[rows, tokens] = x.shape() else { bail!("x must be a matrix of probabilities, got shape {:?}", x.shape()) };
    ensure!(tokens > 0, "there is no token to choose from");
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("x must be floats, got {}", x.dtype())));
    }
    let truncated = match mode {
        "truncated" => true,
        "non-truncated" => false,
        other => bail!("mode must be \"truncated\" or \"non-truncated\", got {other:?}"),
    };
    ensure!((0..=tokens as i64).contains(&k), "k must lie in [0, {tokens}], got {k}");
    for (name, t) in [("ps", Some(ps)), ("threshold", threshold), ("topp_seed", topp_seed)] {
        if let Some(t) = t {
            ensure!(t.numel() == rows, "{name} needs one number for each of {rows} rows, got shape {:?}", t.shape());
        }
    }
    let token = cx.out([rows, 1], DType::Int64)?;
    cx.cpu(|| {
        let own = topp_seed.map(|t| t.try_cast(DType::Int64)?.try_to_vec::<i64>()).transpose()?;
        let mut draws = vec![0f64; rows];
        match own {
            Some(seeds) => draws
                .iter_mut()
                .zip(seeds)
                .for_each(|(d, s)| rng::uniform(s as u64, 0, std::slice::from_mut(d).into(), 0.0, 1.0)),
            None if seed >= 0 => rng::uniform(seed as u64, 0, draws.as_mut_slice().into(), 0.0, 1.0),
            None => {
                let (seed, start) = crate::random::reserve(rows);
                rng::uniform(seed, start, draws.as_mut_slice().into(), 0.0, 1.0)
            }
        }
        let (probs, ps) = (x.to_f64_vec(), ps.to_f64_vec());
        let floors = threshold.map(Tensor::to_f64_vec);
        let mut places = token.data_mut::<i64>();
        for (n, row) in probs.chunks_exact(tokens).enumerate() {
            let floor = floors.as_ref().map_or(f64::NEG_INFINITY, |f| f[n]);
            places.slice()[n] = choose(row, ps[n], floor, truncated, draws[n]) as i64;
        }
        Ok(())
    })?;
    let mut out = vec![x.take_along_axis(&token, 1), token];
    if return_top {
        let (scores, ids) = if k > 0 {
            x.try_topk_with(k, TopkOpts::new().axis(1))?
        } else {
            (x.try_narrow(1, 0, 0)?, Tensor::zeros_on([rows, 0], DType::Int64, x.device()))
        };
        out.extend([scores, ids]);
    }
    Ok(Varying(out))
}

/// The token that a number `draw` in [0, 1) means.
fn choose(probs: &[f64], p: f64, floor: f64, truncated: bool, draw: f64) -> usize {
    let mut order: Vec<usize> = (0..probs.len()).collect();
    order.sort_by(|&a, &b| probs[b].total_cmp(&probs[a]));
    let (mut sum, mut kept) = (0.0, 0);
    for &i in &order {
        if kept > 0 && (sum >= p || probs[i] < floor) {
            break;
        }
        sum += probs[i];
        kept += 1;
    }
    let goal = draw * if truncated { sum.min(p) } else { sum };
    let mut passed = 0.0;
    for &i in &order[..kept] {
        passed += probs[i];
        if passed > goal {
            return i;
        }
    }
    // Rounding, or a sum that is not positive.
    order[if goal > 0.0 { kept - 1 } else { 0 }]
}

fn tree_samples() -> Vec<Sample> {
    vec![
        sample![
            values([2i64, 2, 6, 1, 3, 9, 6, 1, 0, 1, 9, 0], [3, 2, 2]),
            values([0i64, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1], [3, 2, 2])
        ],
        sample![values([4i32, 5, 6], [1, 1, 3]), values([0i32, 0, 0], [1, 1, 3])],
    ]
}
fn top_p_samples() -> Vec<Sample> {
    let p = |a: f32, b: f32| values([a, b], [2]);
    vec![
        sample![positive([2, 4]), p(0.5, 0.9)],
        sample![positive([2, 4]), p(0.5, 0.0); threshold = p(0.1, 0.2), mode = "non-truncated", k = 2, return_top = true],
        sample![positive([2, 4]), p(1.0, 1.0); topp_seed = values([3i64, 4], [2, 1]), return_top = true],
    ]
}
