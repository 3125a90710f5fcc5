//! Weights in another form, gradients cut, parameters as one vector: Paddle's `nn.utils`.

mod by_name;
mod gradients;
mod spectral_norm;
mod vector;
mod weight_norm;

pub use gradients::{clip_grad_norm_, clip_grad_value_};
pub use spectral_norm::{SpectralNormOptions, remove_spectral_norm, spectral_norm};
pub use vector::{parameters_to_vector, vector_to_parameters};
pub use weight_norm::{remove_weight_norm, weight_norm};

use crate::{Form, Members, ParamAttr, Parameter, Path, Visitor};
use sampan_core::{Error, Result, Tensor};
use std::any::Any;
use std::sync::Arc;

/// The parameter of that name, be it plain or computed from others.
fn find(layer: &(impl Members + ?Sized), name: &str) -> Result<Parameter> {
    struct Find<'a>(&'a str, Option<Parameter>);
    impl Visitor for Find<'_> {
        fn parameter(&mut self, path: &Path, p: &Parameter) {
            if path.as_str() == self.0 {
                self.1 = Some(p.clone());
            }
        }
        fn computed(&mut self, path: &Path, p: &Parameter) {
            self.parameter(path, p);
        }
    }
    let mut find = Find(name, None);
    layer.visit(&Path::default(), &mut find);
    let names = || layer.named_parameters().iter().map(|(n, _)| n.clone()).collect::<Vec<_>>().join(", ");
    find.1
        .ok_or_else(|| Error::invalid(format!("there is no parameter {name:?}")).hint(format!("there are {}", names())))
}

/// The plain parameter of that name; one that is computed already cannot get a second form.
fn find_plain(layer: &(impl Members + ?Sized), name: &str) -> Result<Parameter> {
    let p = find(layer, name)?;
    if p.form().is_some() {
        return Err(Error::invalid(format!("the parameter {name:?} has a norm already")).hint("remove that first"));
    }
    Ok(p)
}

/// Computes the parameter of that name from its own tensor again, which takes over the present value; it must have had the
/// form `F`.
fn remove<F: Form>(layer: &(impl Members + ?Sized), name: &str, value: impl Fn(&F) -> Result<Tensor>) -> Result<()> {
    let p = find(layer, name)?;
    let form = p.form().and_then(|form| (form as Arc<dyn Any + Send + Sync>).downcast::<F>().ok());
    let Some(form) = form else {
        return Err(Error::invalid(format!("the parameter {name:?} has no such norm")));
    };
    p.set_value(&value(&form)?.detach())?;
    p.set_form(None);
    Ok(())
}

/// A parameter that stands for part of another one, with its settings.
fn part_of(p: &Parameter, name: String, values: Tensor) -> Parameter {
    let part = Parameter::with_attr(values, &ParamAttr::new().name(name).trainable(p.trainable()));
    part.set_settings(p.settings());
    part
}

/// A weight as a matrix with one row for each position of `axis`.
fn rows_of(weight: &Tensor, axis: usize) -> Result<Tensor> {
    let n = weight.shape()[axis] as i64;
    weight.try_moveaxis([axis], [0])?.try_reshape([n, -1])
}
