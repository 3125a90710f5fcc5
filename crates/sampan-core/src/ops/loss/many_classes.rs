//! Training with very many classes: a tree of yes-or-no questions, and classes drawn at random.

use crate::ops::cross_entropy::checked_labels;
use crate::ops::prelude::*;
use crate::ops::reduction::SumOpts;
use sampan_kernels::rng;

/// No label is ignored by this number.
const NONE: i64 = i64::MIN;

/// The way from each row's leaf to the root: the inner nodes that ask, and whether the answer is yes; a node below 0 ends it.
struct Paths {
    nodes: Tensor,
    yes: Tensor,
}

impl Paths {
    /// Those of the complete binary tree: its nodes are counted row by row from 1 at the root, so that the leaves are
    /// `classes` to `2 * classes - 1`, and the parent of a node is its half.
    fn complete(label: &Tensor, classes: i64) -> Result<Paths> {
        if label.device() != Device::Meta {
            checked_labels(label, classes as usize, NONE)?;
        }
        let leaf = label.try_cast(DType::Int64)?.reshape_to([label.numel(), 1]) + classes;
        let longest = (2 * classes - 1).ilog2() as i64;
        let step = Tensor::arange(0, longest, 1);
        let nodes = leaf.bitwise_right_shift(&(&step + 1)) - 1;
        Ok(Paths { nodes, yes: leaf.bitwise_right_shift(&step).bitwise_and(1).not_equal(0) })
    }

    fn custom(table: &Tensor, code: &Tensor, rows: usize) -> Result<Paths> {
        ensure!(
            table.ndim() == 2 && table.dim(0) == rows && code.shape() == table.shape(),
            "path_table and path_code must have one row for each of {rows} rows of input, got {:?} and {:?}",
            table.shape(),
            code.shape()
        );
        Ok(Paths { nodes: table.try_cast(DType::Int64)?, yes: code.not_equal(0) })
    }
}

/// The hierarchical sigmoid loss `[rows, 1]`: the classes are the leaves of a binary tree whose inner nodes hold a row of
/// `weight` and a number of `bias` each, and the loss adds up the cross entropies of the questions on the way from a leaf
/// to the root. Without `path_table` and `path_code` the tree is the complete one; with them, each row of them names the
/// inner nodes on the row's way and the answers, up to the first negative number. As in Paddle, a question that a shorter
/// way lacks adds ln 2, which changes no gradient. Gradients are dense, whatever `is_sparse` says.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let x = Tensor::new([[1.0f32, 2.0]]);
/// let loss = x.hsigmoid_loss(&Tensor::new([3i64]), 4, &Tensor::zeros([3, 2], DType::Float32), None);
/// assert!((loss.to_f64() - 4f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = hsigmoid_samples, amp = "black")]
fn hsigmoid_loss(
    input: &Tensor,
    label: &Tensor,
    num_classes: i64,
    weight: &Tensor,
    #[default(None)] bias: Option<&Tensor>,
    #[opt(None)] path_table: Option<&Tensor>,
    #[opt(None)] path_code: Option<&Tensor>,
    #[opt(false)] is_sparse: bool,
) -> Result<Tensor> {
    let _ = is_sparse;
    let &[rows, features] = input.shape() else { bail!("input must be a matrix, got shape {:?}", input.shape()) };
    ensure!(num_classes >= 2, "num_classes must be at least 2, got {num_classes}");
    ensure!(label.numel() == rows, "{rows} rows need as many labels, got shape {:?}", label.shape());
    ensure!(
        weight.ndim() == 2 && weight.dim(1) == features,
        "weight must have {features} columns as input has, got shape {:?}",
        weight.shape()
    );
    let nodes = weight.dim(0);
    if let Some(b) = bias {
        ensure!(b.numel() == nodes, "bias needs one number for each of {nodes} nodes, got shape {:?}", b.shape());
    }
    let paths = match (path_table, path_code) {
        (None, None) => {
            ensure!(
                nodes as i64 == num_classes - 1,
                "a tree of {num_classes} classes has {} inner nodes, weight has {nodes} rows",
                num_classes - 1
            );
            Paths::complete(label, num_classes)?
        }
        (Some(table), Some(code)) => Paths::custom(table, code, rows)?,
        _ => bail!("path_table and path_code come together"),
    };
    let length = paths.nodes.dim(1);
    let asked = paths.nodes.greater_equal(0).cast(DType::Int64).cumprod(1).not_equal(0);
    let at = asked.where_cond(&paths.nodes, 0).reshape_to([rows * length]);
    let questions = weight.try_index_select(&at, 0)?.reshape_to([rows, length, features]);
    let mut score = (questions * input.unsqueeze(1)).sum(2);
    if let Some(b) = bias {
        score = score + b.reshape_to([nodes]).index_select(&at, 0).reshape_to([rows, length]);
    }
    let signed = paths.yes.where_cond(&score, -&score);
    let losses = -asked.where_cond(signed, 0.0).log_sigmoid();
    Ok(losses.sum_with(1, SumOpts::new().keepdim(true)))
}

/// The classes that occur in `label`, sorted, filled up at random with others to `num_samples`, and the labels as places
/// in this list: `(remapped_label, sampled_class_center)`. All classes that occur are there even if they are more.
///
/// ```
/// # use sampan_core::Tensor;
/// let (label, centers) = Tensor::new([7i64, 3, 3]).class_center_sample(10, 2);
/// assert_eq!((label.to_vec::<i64>(), centers.to_vec::<i64>()), (vec![1, 0, 0], vec![3, 7]));
/// ```
#[op(random, non_diff, module = "nn.functional", samples = center_samples, results("remapped_label", "sampled_class_center"))]
fn class_center_sample(
    cx: &Cx,
    label: &Tensor,
    num_classes: i64,
    num_samples: i64,
    #[opt(None)] group: &Value,
) -> Result<(Tensor, Tensor)> {
    ensure!(
        matches!(group, Value::None | Value::Bool(false)),
        "group must be None or False: classes are sampled in one process"
    );
    ensure!(label.ndim() == 1 && label.numel() > 0, "label must be a list of labels, got shape {:?}", label.shape());
    if !label.dtype().is_int() {
        return Err(Error::dtype(format!("label must be integers, got {}", label.dtype())));
    }
    ensure!(num_classes > 0, "num_classes must be positive, got {num_classes}");
    ensure!((0..=num_classes).contains(&num_samples), "num_samples must lie in [0, {num_classes}], got {num_samples}");
    cx.needs_values()?;
    let labels = checked_labels(label, num_classes as usize, NONE)?;
    let mut centers = labels.clone();
    centers.sort_unstable();
    centers.dedup();
    let place = |l: &i64| centers.binary_search(l).expect("every label is a center") as i64;
    let remapped: Vec<i64> = labels.iter().map(place).collect();
    let missing = (num_samples as usize).saturating_sub(centers.len());
    if missing > 0 {
        crate::shape::check_room(num_classes as usize)?;
        let mut others: Vec<i64> = (0..num_classes).filter(|c| centers.binary_search(c).is_err()).collect();
        let mut order = vec![0i64; others.len()];
        let (seed, start) = crate::random::reserve(order.len());
        rng::randperm(seed, start, &mut order);
        others = order[..missing].iter().map(|&i| others[i as usize]).collect();
        centers.extend(others);
    }
    let list = |v: Vec<i64>| {
        let n = v.len();
        Tensor::from_vec(v, [n]).try_cast(label.dtype())
    };
    Ok((list(remapped)?, list(centers)?))
}

fn hsigmoid_samples() -> Vec<Sample> {
    let labels = |n: i64| values((0..n).collect::<Vec<_>>(), [n as usize]);
    vec![
        sample![randn([5, 3]), labels(5), 5, randn([4, 3]), randn([4, 1])],
        sample![randn([4, 2]), values([3i64, 0, 1, 2], [4, 1]), 4, randn([3, 2])],
        sample![randn([0, 3]), labels(0), 5, randn([4, 3])],
        sample![
            randn([2, 3]), labels(2), 5, randn([4, 3]), randn([4, 1]);
            path_table = values([0i64, -1, 2, 0, 1, 3], [2, 3]),
            path_code = values([1i64, -1, 0, 0, 1, 1], [2, 3])
        ],
    ]
}
fn center_samples() -> Vec<Sample> {
    let labels = || values([5i64, 3, 3, 7], [4]);
    vec![sample![labels(), 10, 2], sample![labels(), 8, 3], sample![values([2i32, 0, 1], [3]), 3, 3]]
}
