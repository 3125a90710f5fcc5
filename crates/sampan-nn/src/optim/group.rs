//! What an optimizer is given to train: parameters, or groups of them with settings of their own.

use crate::Parameter;
use crate::clip::ClipGrad;
use crate::regularizer::Regularizer;
use sampan_core::value::Arg;
use sampan_core::{Dict, Object, Result, Tensor, Value, ensure};

/// Parameters with settings of their own, like one of Paddle's dicts.
///
/// ```
/// use sampan_nn::{Linear, Members, Momentum, ParamGroup};
/// let (body, head) = (Linear::new(4, 4), Linear::new(4, 1));
/// let groups = vec![
///     ParamGroup::new(body.parameters()).learning_rate(0.1),
///     ParamGroup::new(head.parameters()).weight_decay(0.01).set("momentum", 0.8),
/// ];
/// let opt = Momentum::new(0.1, groups);
/// assert_eq!(opt.parameters().len(), 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ParamGroup {
    pub(crate) params: Vec<Parameter>,
    pub(crate) settings: Dict,
}

impl ParamGroup {
    /// A group with the optimizer's settings.
    pub fn new(params: impl IntoIterator<Item = Parameter>) -> ParamGroup {
        ParamGroup { params: params.into_iter().collect(), settings: Dict::new() }
    }
    /// Multiplies the optimizer's learning rate.
    pub fn learning_rate(self, factor: f64) -> ParamGroup {
        self.set("learning_rate", factor)
    }
    /// A penalty, or the optimizer's own decay, for this group.
    pub fn weight_decay(self, decay: impl Into<Regularizer>) -> ParamGroup {
        self.set("weight_decay", decay.into())
    }
    /// A limit on this group's gradients; a global norm is that of the group.
    pub fn grad_clip(self, clip: ClipGrad) -> ParamGroup {
        self.set("grad_clip", clip)
    }
    /// Any other setting of the optimizer, by its name: `beta1`, `epsilon`, `momentum` …
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> ParamGroup {
        self.settings.insert(name, value);
        self
    }
}

/// The parameters of an optimizer: a list, or a list of groups.
#[derive(Clone, Debug, Default)]
pub struct Parameters(pub(crate) Vec<ParamGroup>);

impl Parameters {
    /// The groups, checked: there are parameters, and none is in two groups. Within a group a shared one counts once.
    pub(crate) fn into_groups(self) -> Result<Vec<ParamGroup>> {
        let mut groups: Vec<ParamGroup> = Vec::new();
        for mut group in self.0 {
            let mut params: Vec<Parameter> = Vec::new();
            for p in std::mem::take(&mut group.params) {
                let elsewhere = groups.iter().any(|g| g.params.iter().any(|q| q.is_same(&p)));
                ensure!(!elsewhere, "the parameter {} is in more than one group", p.name());
                ensure!(p.dtype().is_float(), "the parameter {} is {}, not a float", p.name(), p.dtype());
                if !params.iter().any(|q| q.is_same(&p)) {
                    params.push(p);
                }
            }
            groups.push(ParamGroup { params, ..group });
        }
        ensure!(groups.iter().any(|g| !g.params.is_empty()), "there are no parameters to train; pass net.parameters()");
        Ok(groups)
    }
}

impl IntoIterator for Parameters {
    type Item = ParamGroup;
    type IntoIter = std::vec::IntoIter<ParamGroup>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Vec<Parameter>> for Parameters {
    fn from(params: Vec<Parameter>) -> Parameters {
        Parameters(vec![ParamGroup::new(params)])
    }
}
impl From<&[Parameter]> for Parameters {
    fn from(params: &[Parameter]) -> Parameters {
        params.to_vec().into()
    }
}
impl<const N: usize> From<[Parameter; N]> for Parameters {
    fn from(params: [Parameter; N]) -> Parameters {
        Parameters(vec![ParamGroup::new(params)])
    }
}
impl From<Vec<ParamGroup>> for Parameters {
    fn from(groups: Vec<ParamGroup>) -> Parameters {
        Parameters(groups)
    }
}
impl<const N: usize> From<[ParamGroup; N]> for Parameters {
    fn from(groups: [ParamGroup; N]) -> Parameters {
        Parameters(groups.into())
    }
}
/// Plain tensors that are to be trained.
impl From<Vec<Tensor>> for Parameters {
    fn from(tensors: Vec<Tensor>) -> Parameters {
        tensors.into_iter().map(Parameter::of).collect::<Vec<_>>().into()
    }
}
impl From<Parameters> for Value {
    fn from(parameters: Parameters) -> Value {
        Value::Object(Object::new(parameters))
    }
}

/// A list of parameters or tensors.
fn read_list(v: &Value) -> Option<Vec<Parameter>> {
    match v {
        Value::Tensor(t) => Some(vec![Parameter::of(t.clone())]),
        Value::Tensors(ts) => Some(ts.iter().cloned().map(Parameter::of).collect()),
        Value::List(vs) => vs.iter().map(read_list).collect::<Option<Vec<_>>>().map(|lists| lists.concat()),
        Value::Object(o) => {
            o.downcast::<Parameter>().map(|p| vec![p.clone()]).or_else(|| o.downcast::<Vec<Parameter>>().cloned())
        }
        _ => None,
    }
}

impl<'a> Arg<'a> for Parameters {
    const EXPECTED: &'static str = "a list of parameters, or of dicts with `params` and settings";
    fn read(v: &'a Value) -> Option<Self> {
        let group = |v: &Value| {
            let Value::Dict(dict) = v else { return None };
            let params = read_list(dict.get("params")?)?;
            let settings = dict.iter().filter(|(k, _)| *k != "params").map(|(k, v)| (k, v.clone())).collect();
            Some(ParamGroup { params, settings })
        };
        match v {
            Value::Object(o) if o.downcast::<Parameters>().is_some() => o.downcast::<Parameters>().cloned(),
            Value::List(vs) if matches!(vs.first(), Some(Value::Dict(_))) => {
                vs.iter().map(group).collect::<Option<Vec<_>>>().map(Parameters)
            }
            Value::Tensor(_) => None,
            other => read_list(other).map(Parameters::from),
        }
    }
}
