//! Recurrent layers on top of each other, in one or both directions: one call for the whole of an LSTM.

use crate::ops::dropout::DropoutOpts;
use crate::ops::joining::{try_concat, try_stack};
use crate::ops::loss::SequenceMaskOpts;
use crate::ops::prelude::*;
use crate::ops::sequence::{Steps, cell_of};

/// Which of the steps each sequence takes, `[batch, steps]`.
fn taken(lengths: &Tensor, batch: usize, steps: usize) -> Result<Tensor> {
    ensure!(
        lengths.shape() == [batch],
        "sequence_length must have shape [{batch}], one number for each sequence, got {:?}",
        lengths.shape()
    );
    lengths.try_sequence_mask_with(steps as i64, SequenceMaskOpts::new().dtype(DType::Bool))
}

/// The stack as its weights describe it.
struct Stack<'a> {
    mode: &'a str,
    /// The weights of each cell: those of the input and of the state, their biases, and a projection if there is one.
    cells: Vec<&'a [Tensor]>,
    directions: usize,
    /// The number of features of each state.
    sizes: Vec<usize>,
    time_major: bool,
}

impl<'a> Stack<'a> {
    fn new(mode: &'a str, weights: &'a [Tensor], layers: i64, direction: &str, time_major: bool) -> Result<Stack<'a>> {
        let cell = cell_of(mode)?;
        let directions = match direction {
            "forward" => 1,
            "bidirect" | "bidirectional" => 2,
            other => bail!("direction must be \"forward\", \"bidirect\" or \"bidirectional\", got {other:?}"),
        };
        let count = usize::try_from(layers).unwrap_or(0).saturating_mul(directions);
        let each = weights.len() / count.max(1);
        ensure!(
            count > 0 && count.saturating_mul(each) == weights.len() && matches!(each, 4 | 5),
            "weights must be four for each of {layers} layers and {directions} directions, or five with a projection, \
             got {}",
            weights.len()
        );
        ensure!(each == 4 || cell.has_cell_state(), "a projection belongs to an LSTM");
        let cells: Vec<&[Tensor]> = weights.chunks(each).collect();
        let mut sizes = Vec::new();
        for w in &cells {
            ensure!(w[0].ndim() == 2 && w[1].ndim() == 2, "weights of inputs and of states are matrices");
            let (units, fed_back) = (w[1].dim(0) / cell.gates(), w[1].dim(1));
            let own = if cell.has_cell_state() { vec![fed_back, units] } else { vec![fed_back] };
            ensure!(sizes.is_empty() || sizes == own, "all layers must have states of one size");
            sizes = own;
        }
        Ok(Stack { mode, cells, directions, sizes, time_major })
    }

    /// One cell along the sequences: the outputs of all steps and the last states. A sequence that is shorter than the
    /// others keeps its states after its end.
    fn walk(&self, k: usize, x: &Tensor, states: Vec<Tensor>, masks: Option<&[Tensor]>) -> Result<Vec<Tensor>> {
        let (w, is_reverse) = (self.cells[k], k % self.directions == 1);
        let (features, wanted) = (x.dim(2), w[0].dim(1));
        ensure!(features == wanted, "the input has {features} features, the cell takes {wanted}");
        let gates = x.try_linear(&w[0].try_t()?, Some(&w[2]))?;
        let (h, c, project) = (&states[0], states.get(1), w.get(4));
        if masks.is_none() && project.is_none() {
            return gates.try_recurrent_walk(&w[1], &w[3], h, c, self.mode, is_reverse, self.time_major);
        }
        let steps = Steps { mode: self.mode, is_reverse, time_major: self.time_major, masks, project };
        steps.walk(&gates, &w[1], &w[3], h, c)
    }
}

/// Recurrent layers on top of each other over sequences `[batch, time, features]` (`[time, batch, features]` if
/// `time_major`): the outputs of all steps, and the last states, each of shape `[layers * directions, batch, size]`.
///
/// `mode` is `"LSTM"`, `"GRU"`, `"RNN_TANH"` or `"RNN_RELU"`; `initial_states` are `h` and, of an LSTM, `c`, in the shape of
/// the last ones, or none for zeros. `weights` holds for each layer, and in it for each direction, the weight of the input
/// `[gates * units, features]`, that of the state `[gates * units, size]`, their biases, and, if the outputs of an LSTM are
/// projected, `[units, size]`. `dropout` acts between the layers while `training`. After the end of a sequence, which
/// `sequence_length` tells, outputs are zero and states stay.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let one = Tensor::new([[1.0f32]]);
/// let weights = [one.clone(), one.clone(), Tensor::new([0.0f32]), Tensor::new([0.0f32])];
/// let out = Tensor::new([[[1.0f32], [2.0]]]).rnn(&[], &weights, None, "RNN_RELU", 1, "forward");
/// assert_eq!((out[0].to_vec::<f32>(), out[1].shape()), (vec![1.0, 3.0], &[1, 1, 1][..]));
/// ```
#[op(
    random,
    module = "_C_ops",
    samples = rnn_samples,
    amp = "keep",
    results("out", "h", "c"),
    peer = "none: the recurrent layers, which are calls of it, have peers"
)]
fn rnn(
    x: &Tensor,
    initial_states: &[Tensor],
    weights: &[Tensor],
    #[default(None)] sequence_length: Option<&Tensor>,
    #[default("LSTM")] mode: &str,
    #[default(1)] num_layers: i64,
    #[default("forward")] direction: &str,
    #[opt(0.0)] dropout: f64,
    #[opt(false)] training: bool,
    #[opt(false)] time_major: bool,
) -> Result<Vec<Tensor>> {
    let &[first, second, _] = x.shape() else {
        bail!("the input must have axes for batch, time and features, got shape {:?}", x.shape())
    };
    let (batch, steps) = if time_major { (second, first) } else { (first, second) };
    ensure!(steps > 0, "the sequences have no steps, the input has shape {:?}", x.shape());
    let stack = Stack::new(mode, weights, num_layers, direction, time_major)?;
    let (total, sizes) = (stack.cells.len(), &stack.sizes);
    ensure!(
        initial_states.is_empty() || initial_states.len() == sizes.len(),
        "{mode} has {} states, got {}",
        sizes.len(),
        initial_states.len()
    );
    let mut before: Vec<Vec<Tensor>> = Vec::new();
    for (state, size) in initial_states.iter().zip(sizes) {
        let expected = [total, batch, *size];
        ensure!(state.shape() == expected, "a state must have shape {expected:?}, got {:?}", state.shape());
        before.push(state.try_unbind(0)?);
    }
    let mask = sequence_length.map(|lengths| taken(lengths, batch, steps)).transpose()?;
    let masks = mask.as_ref().map(|mask| mask.try_unbind(1)).transpose()?;
    let mut after = vec![Vec::with_capacity(total); sizes.len()];
    let mut x = x.clone();
    for layer in 0..total / stack.directions {
        if layer > 0 && dropout > 0.0 {
            x = x.try_dropout_with(dropout, DropoutOpts::new().training(training))?;
        }
        let mut ways = Vec::with_capacity(stack.directions);
        for k in layer * stack.directions..(layer + 1) * stack.directions {
            let zeros = || sizes.iter().map(|&n| Tensor::zeros([batch, n], x.dtype())).collect();
            let states = if before.is_empty() { zeros() } else { before.iter().map(|s| s[k].clone()).collect() };
            let mut out = stack.walk(k, &x, states, masks.as_deref())?.into_iter();
            ways.extend(out.next());
            out.zip(&mut after).for_each(|(state, all)| all.push(state));
        }
        x = if ways.len() == 1 { ways.remove(0) } else { try_concat(&ways, -1)? };
    }
    if let Some(mask) = mask {
        // What a sequence puts out after its end is zero.
        let mask = if time_major { mask.try_t()? } else { mask };
        x = mask.try_unsqueeze(-1)?.try_where_cond(&x, 0.0)?;
    }
    let states = after.iter().map(|state| try_stack(state, 0)).collect::<Result<Vec<_>>>()?;
    Ok([vec![x], states].concat())
}

fn rnn_samples() -> Vec<Sample> {
    // Sizes are those of batch, time, features and units.
    let weights = |gates: usize, cells: &[[usize; 2]], project: Option<usize>| -> Vec<Tensor> {
        let cell = |&[features, units]: &[usize; 2]| {
            let size = project.unwrap_or(units);
            let mut all = vec![
                uniform([gates * units, features], -0.8, 0.9),
                uniform([gates * units, size], -0.7, 0.8),
                uniform([gates * units], -0.5, 0.6),
                uniform([gates * units], -0.4, 0.5),
            ];
            all.extend(project.map(|size| uniform([units, size], -0.9, 0.8)));
            all
        };
        cells.iter().flat_map(cell).collect()
    };
    let none = Vec::<Tensor>::new;
    vec![
        sample![randn([2, 3, 2]), none(), weights(4, &[[2, 2]], None)],
        sample![
            randn([2, 2, 2]),
            vec![uniform([4, 2, 1], -0.9, 0.9), uniform([4, 2, 1], -0.7, 0.8)],
            weights(4, &[[2, 1], [2, 1], [2, 1], [2, 1]], None),
            None,
            "LSTM",
            2,
            "bidirect"
        ],
        sample![randn([2, 3, 2]), none(), weights(3, &[[2, 2]], None), values([3i64, 2], [2]), "GRU"],
        sample![
            randn([3, 2, 2]),
            vec![uniform([2, 2, 2], -0.9, 0.9)],
            weights(1, &[[2, 2], [2, 2]], None),
            values([1i64, 3], [2]),
            "RNN_TANH",
            2;
            time_major = true
        ],
        sample![randn([1, 2, 2]), none(), weights(1, &[[2, 2], [2, 2]], None), None, "RNN_RELU", 1, "bidirectional"],
        sample![randn([2, 2, 1]), none(), weights(4, &[[1, 2]], Some(1)), None, "LSTM"],
    ]
}
