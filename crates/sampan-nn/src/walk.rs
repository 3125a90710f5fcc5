//! What can be done with the members of anything that has some. The functions take a walk, not a type, so that they are
//! compiled once, not for each layer.

use crate::{Base, Buffer, LayerRef, Parameter, Path, StateReport, Visitor};
use sampan_core::{DType, Error, Result, Tensor};
use std::any::Any;
use std::collections::BTreeMap;

/// Shows the members to a visitor.
type Walk<'a> = dyn Fn(&mut dyn Visitor) + 'a;

pub(crate) fn named_parameters(walk: &Walk) -> Vec<(String, Parameter)> {
    struct Collect(Vec<(String, Parameter)>);
    impl Visitor for Collect {
        fn parameter(&mut self, path: &Path, p: &Parameter) {
            if !self.0.iter().any(|(_, q)| q.is_same(p)) {
                self.0.push((path.as_str().into(), p.clone()));
            }
        }
    }
    let mut found = Collect(Vec::new());
    walk(&mut found);
    found.0
}

pub(crate) fn parameters(walk: &Walk) -> Vec<Parameter> {
    named_parameters(walk).into_iter().map(|(_, p)| p).collect()
}

pub(crate) fn named_buffers(walk: &Walk) -> Vec<(String, Buffer)> {
    struct Collect(Vec<(String, Buffer)>);
    impl Visitor for Collect {
        fn buffer(&mut self, path: &Path, b: &Buffer) {
            self.0.push((path.as_str().into(), b.clone()));
        }
    }
    let mut found = Collect(Vec::new());
    walk(&mut found);
    found.0
}

pub(crate) fn named_sublayers(walk: &Walk) -> Vec<(String, &'static str)> {
    struct Collect(Vec<(String, &'static str)>);
    impl Visitor for Collect {
        fn layer(&mut self, path: &Path, layer: LayerRef) {
            self.0.push((path.as_str().into(), layer.type_name));
        }
    }
    let mut found = Collect(Vec::new());
    walk(&mut found);
    found.0
}

pub(crate) fn state_dict(walk: &Walk) -> BTreeMap<String, Tensor> {
    struct Collect(BTreeMap<String, Tensor>);
    impl Visitor for Collect {
        fn parameter(&mut self, path: &Path, p: &Parameter) {
            self.0.insert(path.as_str().into(), p.tensor());
        }
        fn buffer(&mut self, path: &Path, b: &Buffer) {
            if b.persistable {
                self.0.insert(path.as_str().into(), b.tensor());
            }
        }
    }
    let mut found = Collect(BTreeMap::new());
    walk(&mut found);
    found.0
}

pub(crate) fn set_state_dict(walk: &Walk, state: &BTreeMap<String, Tensor>) -> Result<()> {
    let report = state_report(walk, state);
    if !report.is_clean() {
        return Err(Error::invalid(format!("the state does not fit the layer: {report}")).in_op("set_state_dict"));
    }
    load_matching(walk, state).map(|_| ())
}

pub(crate) fn load_matching(walk: &Walk, state: &BTreeMap<String, Tensor>) -> Result<StateReport> {
    let report = state_report(walk, state);
    for (name, t) in &state_dict(walk) {
        if let Some(value) = state.get(name).filter(|v| v.shape() == t.shape()) {
            t.try_set_value(&value.try_cast(t.dtype())?)?;
        }
    }
    Ok(report)
}

pub(crate) fn state_report(walk: &Walk, state: &BTreeMap<String, Tensor>) -> StateReport {
    let own = state_dict(walk);
    let mut report = StateReport::default();
    for (name, t) in &own {
        match state.get(name) {
            None => report.missing.push(name.clone()),
            Some(s) if s.shape() != t.shape() => {
                report.misshapen.push((name.clone(), s.shape().to_vec(), t.shape().to_vec()))
            }
            Some(_) => {}
        }
    }
    report.unexpected = state.keys().filter(|k| !own.contains_key(*k)).cloned().collect();
    report
}

pub(crate) fn set_training(walk: &Walk, on: bool) {
    struct SetMode(bool);
    impl Visitor for SetMode {
        fn base(&mut self, _: &Path, base: &Base) {
            base.set_training(self.0);
        }
    }
    walk(&mut SetMode(on));
}

pub(crate) fn set_trainable(walk: &Walk, on: bool) {
    parameters(walk).iter().for_each(|p| p.set_trainable(on));
}

pub(crate) fn clear_gradients(walk: &Walk) {
    parameters(walk).iter().for_each(Parameter::clear_grad);
}

pub(crate) fn apply(walk: &Walk, f: &mut dyn FnMut(&Path, &dyn Any)) {
    struct Apply<'a>(&'a mut dyn FnMut(&Path, &dyn Any));
    impl Visitor for Apply<'_> {
        fn layer(&mut self, path: &Path, layer: LayerRef) {
            (self.0)(path, layer.layer);
        }
    }
    walk(&mut Apply(f));
}

pub(crate) fn to_dtype(walk: &Walk, dtype: DType) -> Result<()> {
    struct Cast(DType, Result<()>);
    impl Cast {
        fn one(&mut self, t: &Tensor, replace: impl FnOnce(Tensor)) {
            if t.dtype().is_float() && t.dtype() != self.0 && self.1.is_ok() {
                self.1 = t.detach().try_cast(self.0).map(|cast| {
                    cast.set_stop_gradient(t.stop_gradient());
                    cast.set_persistable(true);
                    cast.set_name(t.name());
                    replace(cast);
                });
            }
        }
    }
    impl Visitor for Cast {
        fn parameter(&mut self, _: &Path, p: &Parameter) {
            self.one(&p.tensor(), |cast| drop(p.replace(cast)));
        }
        fn buffer(&mut self, _: &Path, b: &Buffer) {
            self.one(&b.tensor(), |cast| drop(b.replace(cast)));
        }
    }
    let mut cast = Cast(dtype, Ok(()));
    walk(&mut cast);
    cast.1
}
