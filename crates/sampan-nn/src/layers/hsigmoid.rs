//! A loss over very many classes as a tree of yes-or-no questions.

use crate::init::XavierUniform;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::ops::many_classes::HsigmoidLossOpts;
use sampan_core::{Result, Tensor, bail, ensure};
use sampan_macros::class;

/// The hierarchical sigmoid loss.
#[derive(Layer)]
pub struct HSigmoidLoss {
    base: Base,
    /// One row for each inner node of the tree.
    pub weight: Parameter,
    /// `[nodes, 1]`.
    pub bias: Option<Parameter>,
    num_classes: usize,
    is_custom: bool,
}

#[class(module = "nn", object = layer::object)]
impl HSigmoidLoss {
    /// The loss of features `[rows, feature_size]` against labels, each a leaf of the complete binary tree of
    /// `num_classes` leaves. With `is_custom` the tree is one's own: each call gets the ways to the root, and `num_classes`
    /// is the number of inner nodes. `is_sparse` changes nothing: gradients are dense.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::HSigmoidLoss;
    /// let loss = HSigmoidLoss::new(3, 5);
    /// assert_eq!(loss.of(&Tensor::randn([2, 3]), &Tensor::new([0i64, 4]))?.shape(), [2, 1]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        feature_size: usize,
        num_classes: usize,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
        #[opt(false)] is_custom: bool,
        #[opt(false)] is_sparse: bool,
    ) -> Result<HSigmoidLoss> {
        let _ = is_sparse;
        ensure!(num_classes >= 2, "num_classes must be at least 2, got {num_classes}");
        let base = Base::of("HSigmoidLoss");
        let nodes = if is_custom { num_classes } else { num_classes - 1 };
        let weight = base.weight(&[nodes, feature_size], &weight_attr, &XavierUniform::new())?;
        let bias = base.bias(&[nodes, 1], &bias_attr)?;
        Ok(HSigmoidLoss { base, weight, bias, num_classes, is_custom })
    }
}

impl HSigmoidLoss {
    /// The loss of each row under the complete tree.
    pub fn of(&self, input: &Tensor, label: &Tensor) -> Result<Tensor> {
        Ok(self.call_all(&[input.clone(), label.clone()])?.swap_remove(0))
    }

    /// The loss of each row under a tree of one's own: the inner nodes on each row's way, and the answers there.
    pub fn of_paths(&self, input: &Tensor, label: &Tensor, path_table: &Tensor, path_code: &Tensor) -> Result<Tensor> {
        Ok(self.call_all(&[input, label, path_table, path_code].map(Clone::clone))?.swap_remove(0))
    }
}

impl Layer for HSigmoidLoss {
    fn input_names(&self) -> Vec<&'static str> {
        vec!["input", "label", "path_table", "path_code"]
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }

    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let (input, label, paths) = match (inputs, self.is_custom) {
            ([input, label], false) => (input, label, HsigmoidLossOpts::new()),
            ([input, label, table, code], true) => {
                (input, label, HsigmoidLossOpts::new().path_table(table).path_code(code))
            }
            (_, false) => bail!("takes 2 inputs (input, label), got {}", inputs.len()),
            (_, true) => bail!("takes 4 inputs (input, label, path_table, path_code), got {}", inputs.len()),
        };
        let bias = self.bias.as_ref().map(Parameter::value).transpose()?;
        let (classes, weight) = (self.num_classes as i64, self.weight.value()?);
        Ok(vec![input.try_hsigmoid_loss_with(label, classes, &weight, bias.as_ref(), paths)?])
    }
}
