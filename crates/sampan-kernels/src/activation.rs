//! Activations that are computed together with what comes before them, in the same pass.

use crate::vmath::{Real, select};

/// An activation that a kernel applies to what it has just computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// None: what is computed stays as it is.
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x · min(max(x + 3, 0), 6) / 6`.
    Hardswish,
}

/// An [`Activation`] known at compile time.
pub(crate) trait Function: Copy + Send + Sync {
    /// Does it change anything?
    const CHANGES: bool = true;
    /// Its value.
    fn value<T: Real>(self, x: T) -> T;
    /// Its derivative at `x`.
    fn slope<T: Real>(self, x: T) -> T;
}

#[derive(Clone, Copy)]
pub(crate) struct Identity;
impl Function for Identity {
    const CHANGES: bool = false;
    #[inline(always)]
    fn value<T: Real>(self, x: T) -> T {
        x
    }
    #[inline(always)]
    fn slope<T: Real>(self, _: T) -> T {
        T::ONE
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Relu;
impl Function for Relu {
    #[inline(always)]
    fn value<T: Real>(self, x: T) -> T {
        x.max(T::ZERO)
    }
    #[inline(always)]
    fn slope<T: Real>(self, x: T) -> T {
        select(x <= T::ZERO, T::ZERO, T::ONE)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Relu6;
impl Function for Relu6 {
    #[inline(always)]
    fn value<T: Real>(self, x: T) -> T {
        x.max(T::ZERO).min(T::of(6.0))
    }
    #[inline(always)]
    fn slope<T: Real>(self, x: T) -> T {
        select(x <= T::ZERO, T::ZERO, select(x >= T::of(6.0), T::ZERO, T::ONE))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Hardswish;
impl Function for Hardswish {
    #[inline(always)]
    fn value<T: Real>(self, x: T) -> T {
        // Held away from minus infinity, which zero would make NaN.
        x.max(T::of(-1e4)) * ((x + T::of(3.0)).max(T::ZERO).min(T::of(6.0)) * T::of(1.0 / 6.0))
    }
    #[inline(always)]
    fn slope<T: Real>(self, x: T) -> T {
        let inside = (T::of(2.0) * x + T::of(3.0)) * T::of(1.0 / 6.0);
        select(x <= T::of(-3.0), T::ZERO, select(x >= T::of(3.0), T::ONE, inside))
    }
}

/// Evaluates an expression with `$f` as the [`Function`] of an [`Activation`].
macro_rules! with_function {
    ($activation:expr, $f:ident => $body:expr) => {
        match $activation {
            $crate::activation::Activation::Identity => {
                let $f = $crate::activation::Identity;
                $body
            }
            $crate::activation::Activation::Relu => {
                let $f = $crate::activation::Relu;
                $body
            }
            $crate::activation::Activation::Relu6 => {
                let $f = $crate::activation::Relu6;
                $body
            }
            $crate::activation::Activation::Hardswish => {
                let $f = $crate::activation::Hardswish;
                $body
            }
        }
    };
}
pub(crate) use with_function;

impl Activation {
    /// The activation whose op has this name; the empty name is [`Activation::Identity`].
    pub fn named(name: &str) -> Option<Activation> {
        Some(match name {
            "" => Activation::Identity,
            "relu" => Activation::Relu,
            "relu6" => Activation::Relu6,
            "hardswish" => Activation::Hardswish,
            _ => return None,
        })
    }
}
