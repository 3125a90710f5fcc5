//! A network with all that training it takes.

use super::{Callback, checkpoint};
use sampan_core::Captured;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor, amp, no_grad};
use sampan_data::LoaderState;
use sampan_io::Object;
use sampan_nn::metric::Metric;
use sampan_nn::{Layer, Members, Optimizer, Parameter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to become small: computes one or more numbers from a network's outputs and the labels.
pub trait Loss: Send + Sync {
    /// The losses, one for each criterion; they are added up.
    fn losses(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>>;
}

/// A loss layer is given outputs and labels.
impl<L: Layer> Loss for L {
    fn losses(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        self.call_all(&[outputs, labels].concat())
    }
}

/// A function as a loss: `loss_fn(|outputs, labels| …)`.
pub struct LossFn<F>(F);

/// A function as a loss.
pub fn loss_fn<F>(f: F) -> LossFn<F>
where
    F: Fn(&[Tensor], &[Tensor]) -> Result<Tensor> + Send + Sync,
{
    LossFn(f)
}

impl<F: Fn(&[Tensor], &[Tensor]) -> Result<Tensor> + Send + Sync> Loss for LossFn<F> {
    fn losses(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![(self.0)(outputs, labels)?])
    }
}

/// How far training has come.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// Epochs finished.
    pub epoch: usize,
    /// Batches of the current epoch finished.
    pub step: usize,
    /// Batches finished in all.
    pub global_step: usize,
    /// Where the loader stands inside the epoch.
    pub loader: Option<LoaderState>,
    /// Between epochs: what the loader's sampler will make the next order of.
    pub sampler: Vec<u64>,
    /// What each metric has counted inside the epoch.
    pub metrics: Vec<Vec<f64>>,
}

/// A network with optimizer, loss and metrics: trains, evaluates and predicts in one call each.
///
/// ```
/// use sampan::hapi::Model;
/// use sampan::nn::{Adam, CrossEntropyLoss, Linear, metric::Accuracy};
/// use sampan::{Tensor, data::TensorDataset};
/// let data = TensorDataset::new(vec![Tensor::new([[1.0f32, 0.0], [0.0, 1.0]]), Tensor::new([0i64, 1])])?;
/// let mut model = Model::new(Linear::new(2, 2));
/// model.prepare(Adam::new(0.1, model.parameters()), CrossEntropyLoss::new(), [Accuracy::new()]);
/// model.fit(data).epochs(20).batch_size(2).verbose(0).run()?;
/// # Ok::<(), sampan::Error>(())
/// ```
pub struct Model {
    net: Arc<dyn Layer>,
    optimizer: Option<Optimizer>,
    loss: Option<Box<dyn Loss>>,
    pub(super) metrics: Vec<Box<dyn Metric>>,
    inputs: Option<usize>,
    amp: Option<sampan_core::DType>,
    /// Steps of training that are recorded and started as a whole, if asked for.
    captured: Option<Captured>,
    /// How many outputs the network gave there.
    outputs: usize,
    pub(super) position: Position,
    pub(super) interrupt: Option<Arc<AtomicBool>>,
    /// Set by a callback to end training after the step.
    pub stop_training: bool,
}

/// Figures of one batch.
#[derive(Clone, Debug, Default)]
pub struct BatchReport {
    /// Each loss.
    pub losses: Vec<f64>,
    /// Every metric so far, by name.
    pub metrics: Vec<(String, f64)>,
}

impl Model {
    /// Wraps a network; an `Arc` of one can be used outside at the same time.
    pub fn new(net: impl Layer) -> Model {
        Model {
            net: Arc::new(net),
            optimizer: None,
            loss: None,
            metrics: Vec::new(),
            inputs: None,
            amp: None,
            captured: None,
            outputs: 0,
            position: Position::default(),
            interrupt: None,
            stop_training: false,
        }
    }

    /// Says how many fields of a sample are inputs; the rest are labels. Otherwise all but the last are inputs.
    pub fn inputs(mut self, count: usize) -> Model {
        self.inputs = Some(count);
        self
    }

    /// Sets what training and evaluation need.
    pub fn prepare<M: Metric + 'static>(
        &mut self,
        optimizer: Optimizer,
        loss: impl Loss + 'static,
        metrics: impl IntoIterator<Item = M>,
    ) {
        self.optimizer = Some(optimizer);
        self.loss = Some(Box::new(loss));
        self.metrics = metrics.into_iter().map(|m| Box::new(m) as Box<dyn Metric>).collect();
    }

    /// Computes forward passes in a low precision from now on, or (`None`) as they come: Paddle's level O1.
    pub fn set_amp(&mut self, dtype: Option<sampan_core::DType>) {
        self.amp = dtype;
    }

    /// On a GPU, records a step of training at the third batch and then starts it as a whole, or no longer; see
    /// [`Captured`](sampan_core::Captured).
    pub fn set_cuda_graph(&mut self, on: bool) {
        self.captured = on.then(Captured::on_gpus);
    }

    /// Records a step of training at the third batch and then does it again as a whole, on the CPU as well, or no longer; see
    /// [`Captured`](sampan_core::Captured). The bits are the same.
    pub fn set_capture(&mut self, on: bool) {
        self.captured = on.then(Captured::default);
    }

    /// Why steps are not recorded, if one could not be.
    pub fn why_not_captured(&self) -> Option<&str> {
        self.captured.as_ref()?.why_not()
    }

    /// The network.
    pub fn network(&self) -> &Arc<dyn Layer> {
        &self.net
    }

    /// The parameters of the network.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.net.parameters()
    }

    /// The optimizer, once prepared.
    pub fn optimizer(&self) -> Option<&Optimizer> {
        self.optimizer.as_ref()
    }

    /// The optimizer, to be changed.
    pub fn optimizer_mut(&mut self) -> Option<&mut Optimizer> {
        self.optimizer.as_mut()
    }

    /// Batches trained on in all.
    pub fn global_step(&self) -> usize {
        self.position.global_step
    }

    /// How far training has come.
    pub fn position(&self) -> &Position {
        &self.position
    }

    pub(super) fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    /// Ends training after the step when the flag is set from outside, as Ctrl-C does.
    pub fn set_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.interrupt = Some(flag);
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|f| f.load(Ordering::Relaxed))
    }

    /// Inputs and labels among the fields of a batch.
    pub(super) fn split<'a>(&self, batch: &'a [Tensor]) -> Result<(&'a [Tensor], &'a [Tensor])> {
        let inputs = self.inputs.unwrap_or(batch.len().saturating_sub(1).max(1));
        if batch.len() < inputs || batch.is_empty() {
            let message = format!("the network takes {inputs} inputs, a sample has {} fields", batch.len());
            return Err(Error::invalid(message).in_op("Model"));
        }
        Ok(batch.split_at(inputs))
    }

    fn forward(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        match self.amp {
            Some(dtype) => amp::auto_cast(dtype, || self.net.call_all(inputs)),
            None => self.net.call_all(inputs),
        }
    }

    fn losses(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        match &self.loss {
            Some(loss) => loss.losses(outputs, labels),
            None => Ok(Vec::new()),
        }
    }

    fn update_metrics(&mut self, outputs: &[Tensor], labels: &[Tensor]) -> Result<()> {
        no_grad(|| {
            let outputs: Vec<Tensor> = outputs.iter().map(Tensor::detach).collect();
            self.metrics.iter_mut().try_for_each(|m| m.compute(&outputs, labels).and_then(|b| m.update(&b)).map(|_| ()))
        })
    }

    fn report(&self, losses: &[Tensor]) -> Result<BatchReport> {
        let losses = losses.iter().map(|l| Ok(l.try_mean(())?.to_f64())).collect::<Result<_>>()?;
        Ok(BatchReport { losses, metrics: self.metric_values() })
    }

    pub(super) fn metric_values(&self) -> Vec<(String, f64)> {
        self.metrics.iter().flat_map(|m| m.name().into_iter().zip(m.accumulate())).collect()
    }

    /// One step on a batch: forward, backward, and, if `update`, the optimizer; otherwise gradients add up.
    pub fn train_batch(&mut self, inputs: &[Tensor], labels: &[Tensor], update: bool) -> Result<BatchReport> {
        if self.optimizer.is_none() || self.loss.is_none() {
            let message = "training needs an optimizer and a loss";
            return Err(Error::new(Kind::PreconditionNotMet, message).hint("call prepare first").in_op("Model"));
        }
        self.net.train();
        let mut captured = self.captured.take();
        let learnt = match &mut captured {
            None => self.learn(inputs, labels, update),
            Some(captured) => {
                let given: Vec<Tensor> = inputs.iter().chain(labels).cloned().collect();
                let mut outputs = self.outputs;
                let step = |given: &[Tensor]| {
                    let (inputs, labels) = given.split_at(inputs.len());
                    let (found, losses) = self.learn(inputs, labels, update)?;
                    outputs = found.len();
                    Ok([found, losses].concat())
                };
                let results = captured.call(if update { "update" } else { "" }, &given, step);
                // A step that was recorded before has as many of them.
                self.outputs = outputs;
                results.map(|mut all| {
                    let losses = all.split_off(outputs);
                    (all, losses)
                })
            }
        };
        self.captured = captured;
        let (outputs, losses) = learnt?;
        self.update_metrics(&outputs, labels)?;
        self.report(&losses)
    }

    /// Forward, backward and, if `update`, the optimizer: outputs and losses.
    fn learn(&mut self, inputs: &[Tensor], labels: &[Tensor], update: bool) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let outputs = self.forward(inputs)?;
        let losses = self.losses(&outputs, labels)?;
        // Each is a number before they are added up, or one would be counted for every element of another.
        let mut parts = losses.iter().map(|l| if l.ndim() == 0 { Ok(l.clone()) } else { l.try_sum(()) });
        let first = parts.next().ok_or_else(|| Error::invalid("the loss computed nothing").in_op("Model"))??;
        let total = parts.try_fold(first, |sum, l| sum.try_add(&l?))?;
        total.try_backward(None, false)?;
        drop(total);
        if update && let Some(optimizer) = &mut self.optimizer {
            optimizer.step()?;
            optimizer.clear_grad();
        }
        Ok((outputs, losses))
    }

    /// Loss and metrics of a batch, without changing anything but the metrics.
    pub fn eval_batch(&mut self, inputs: &[Tensor], labels: &[Tensor]) -> Result<BatchReport> {
        self.net.eval();
        let outputs = no_grad(|| self.forward(inputs))?;
        let losses = no_grad(|| self.losses(&outputs, labels))?;
        self.update_metrics(&outputs, labels)?;
        self.report(&losses)
    }

    /// The network's outputs for a batch.
    pub fn predict_batch(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.net.eval();
        no_grad(|| self.forward(inputs))
    }

    /// Writes `PATH.pdparams` and, with `training`, `PATH.pdopt`: files that Paddle loads as well. Both are new or both are
    /// old afterwards, see [`sampan_io::set`].
    pub fn save(&self, path: impl AsRef<Path>, training: bool) -> Result<()> {
        let path = path.as_ref();
        let text = path.as_os_str().to_string_lossy();
        if text.is_empty() || text.ends_with(std::path::is_separator) {
            let message = format!("{text:?} is a folder; a name for the files is needed");
            return Err(Error::invalid(message).hint("such as folder/name, without an ending").in_op("save"));
        }
        let mut files = vec![("pdparams", Object::Dict(self.net.state_dict().into_iter().collect()))];
        if let Some(optimizer) = self.optimizer.as_ref().filter(|_| training) {
            files.push(("pdopt", optimizer.state_dict()?.try_into()?));
        }
        sampan_io::set::save(path, &files)
    }

    /// Reads `PATH.pdparams` and, unless `reset_optimizer` or absent, `PATH.pdopt`. With `skip_mismatch` what does not fit is
    /// left as it is and named on standard error; otherwise it is an error that names everything.
    pub fn load(&mut self, path: impl AsRef<Path>, skip_mismatch: bool, reset_optimizer: bool) -> Result<()> {
        // The path that `save` was given, or one of the two files; other dots belong to the name.
        let path = path.as_ref();
        let ours = path.extension().is_some_and(|e| e == "pdparams" || e == "pdopt");
        let path = if ours { path.with_extension("") } else { path.to_path_buf() };
        let state = sampan_io::load(with_suffix(&path, "pdparams"))?.tensors();
        if skip_mismatch {
            let report = self.net.load_matching(&state)?;
            if !report.is_clean() {
                eprintln!("warning: not everything fits: {report}");
            }
        } else {
            self.net.set_state_dict(&state)?;
        }
        let file = with_suffix(&path, "pdopt");
        match &mut self.optimizer {
            Some(optimizer) if !reset_optimizer && file.exists() => {
                optimizer.set_state_dict(&sampan_io::load(&file)?.try_into()?)
            }
            _ => Ok(()),
        }
    }

    /// Writes one file with everything a run needs to go on to the bit.
    pub fn save_checkpoint(&self, path: impl AsRef<Path>, callbacks: &[Box<dyn Callback>]) -> Result<()> {
        checkpoint::save(path.as_ref(), self, callbacks)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
