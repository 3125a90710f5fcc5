//! Models by name: what the command line and other languages build from.

use sampan_core::{Error, Result, Value, class};
use sampan_nn::AnyLayer;

/// A model that is built by name.
#[derive(Debug)]
pub struct Known {
    /// Paddle's name of the function: `resnet18`.
    pub name: &'static str,
    /// A line about it.
    pub doc: &'static str,
    /// The class that it is an object of: `ResNet`.
    pub class: &'static str,
    /// The shape of one input as the model was made for.
    pub input: [usize; 4],
    /// Trained weights that fit the model as [`build`](Known::build) makes it.
    pub weights: Option<Weights>,
    pub(super) arguments: for<'a> fn(Named<'a>) -> Result<(Vec<Value>, Named<'a>)>,
}

/// Arguments by name.
pub type Named<'a> = Vec<(&'a str, Value)>;

/// Where trained weights lie, as Paddle names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// A `.pdparams` file.
    pub url: &'static str,
    /// Its MD5 sum in hexadecimal digits.
    pub md5: &'static str,
}

impl Known {
    /// Builds it with all defaults.
    pub fn build(&self) -> Result<AnyLayer> {
        self.build_with(Vec::new())
    }

    /// Builds it with arguments of its class by name: `num_classes`, `with_pool`, `scale` …
    pub fn build_with(&self, arguments: Named) -> Result<AnyLayer> {
        let (positional, named) = self.arguments(arguments)?;
        let missing = || Error::invalid(format!("{} is no class of layers", self.class));
        let object = class::find("vision.models", self.class).ok_or_else(missing)?.make(positional, named)?;
        object.downcast::<AnyLayer>().cloned().ok_or_else(missing)
    }

    /// What its class is to be built with, positional and by name, where these arguments are given.
    pub fn arguments<'a>(&self, given: Named<'a>) -> Result<(Vec<Value>, Named<'a>)> {
        (self.arguments)(given)
    }
}

/// The given arguments, and those of the preset that were not given.
pub(super) fn or_preset<'a>(mut given: Named<'a>, preset: Vec<(&'static str, Value)>) -> Named<'a> {
    for (name, value) in preset {
        if !given.iter().any(|(known, _)| *known == name) {
            given.push((name, value));
        }
    }
    given
}

/// Functions that build a class with some arguments set, and their entries in the table:
/// `variants! { TABLE: Class ClassOpts -> Product, input; /// doc  name name_with = (positional…; argument = value…) weights; }`.
macro_rules! variants {
    ($table:ident: $class:ident $opts:ident -> $product:ty, $input:expr;
     $(#[doc = $doc:tt] $name:ident $with:ident = ($($given:expr),*; $($key:ident = $value:expr),*) $weights:expr;)*) => {
        $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name() -> $product {
                ::sampan_core::error::unwrap($with(|o| o))
            }
            #[doc = concat!("[`", stringify!($name), "`] with optional arguments: `|o| o.num_classes(10)`.")]
            pub fn $with(options: impl FnOnce($opts) -> $opts) -> ::sampan_core::Result<$product> {
                $class::try_with($($given,)* |o| options(o$(.$key($value))*))
            }
        )*
        pub(super) const $table: &[$crate::vision::models::Known] = &[$($crate::vision::models::Known {
            name: stringify!($name),
            doc: $doc.trim_ascii(),
            input: $input,
            weights: $weights,
            class: stringify!($class),
            arguments: |given| {
                let preset = vec![$((stringify!($key), $value.into())),*];
                Ok((vec![$($given.into()),*], $crate::vision::models::known::or_preset(given, preset)))
            },
        }),*];
    };
}
pub(super) use variants;

/// Weights that lie with Paddle's high-level API.
macro_rules! hapi {
    ($file:literal $md5:literal) => {
        Some($crate::vision::models::Weights {
            url: concat!("https://paddle-hapi.bj.bcebos.com/models/", $file, ".pdparams"),
            md5: $md5,
        })
    };
}
pub(super) use hapi;

/// Weights that lie with Paddle's models of ImageNet.
macro_rules! imagenet {
    ($file:literal $md5:literal) => {
        Some($crate::vision::models::Weights {
            url: concat!("https://paddle-imagenet-models-name.bj.bcebos.com/dygraph/", $file, "_pretrained.pdparams"),
            md5: $md5,
        })
    };
}
pub(super) use imagenet;

/// The size of images that most models were made for.
pub(super) const IMAGENET: [usize; 4] = [1, 3, 224, 224];
