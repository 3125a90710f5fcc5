//! Scalar formulas as data. [`formula!`] turns an expression over one, two or three numbers into a [`Formula`], from which
//! everything follows: a loop on the CPU, the text of a device kernel ([`text`]), the derivative by each number as a
//! formula again, of any order ([`Formula::derivative`]), one formula for a chain of them ([`Formula::compose`]), and the
//! list of plain operations that an exporter writes ([`Formula::replay`]).
//!
//! ```
//! use sampan_formula::{Number, formula};
//! let silu = formula!(|x| x.times(x.sigmoid()));
//! assert_eq!(silu.to_string(), "times(x, sigmoid(x))");
//! assert_eq!(silu.formula().derivative(0).to_string(), "sigmoid(x) + times(x, sigmoid(x) * (1 - sigmoid(x)))");
//! ```
//!
//! A formula knows no dtype (only its device text does): `x + y` is a sum of floats, of integers that wrap, or of complex numbers, as the tensors are.
//! Truth values are numbers too, 0 and 1.

mod derivative;
mod dtype;
mod expression;
mod formula;
mod operation;
pub mod text;

pub use dtype::DType;
pub use expression::{Number, Source, select};
pub use formula::{Bound, Constant, Formula, Registered, registered};
pub use operation::{Binary, Unary};

#[doc(hidden)]
pub use inventory;
