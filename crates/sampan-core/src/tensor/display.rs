//! Tensors as text, in the form Paddle prints them.

use super::Tensor;
use crate::{Device, Scalar};
use parking_lot::RwLock;
use sampan_kernels::AnySlice;
use std::fmt;

/// How tensors are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// A tensor with more elements than this is shortened with `...`.
    pub threshold: usize,
    /// Elements shown at each end of a shortened axis.
    pub edgeitems: usize,
    /// Floats in scientific notation?
    pub sci_mode: bool,
    /// Characters in a line.
    pub linewidth: usize,
}

impl PrintOptions {
    const DEFAULT: PrintOptions =
        PrintOptions { precision: 8, threshold: 1000, edgeitems: 3, sci_mode: false, linewidth: 80 };
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// How tensors are printed now.
pub fn print_options() -> PrintOptions {
    *OPTIONS.read()
}

/// Sets how tensors are printed from now on.
///
/// ```
/// # use sampan_core::{Tensor, tensor::{PrintOptions, print_options, set_printoptions}};
/// set_printoptions(PrintOptions { precision: 2, ..print_options() });
/// assert!(Tensor::new([0.125f64, 2.0]).to_string().ends_with("[0.12, 2.  ])"));
/// ```
pub fn set_printoptions(options: PrintOptions) {
    *OPTIONS.write() = options;
}

const PREFIX: &str = "Tensor(";

/// The name Paddle prints a place by.
fn place_name(device: Device) -> String {
    match device {
        Device::Cpu => "CPUPlace".into(),
        Device::Cuda(number) => format!("Place(gpu:{number})"),
        Device::Meta => "MetaPlace".into(),
    }
}

impl Tensor {
    /// The tensor as text under given options.
    pub fn to_string_with(&self, options: &PrintOptions) -> String {
        let shape: Vec<String> = self.shape().iter().map(usize::to_string).collect();
        let stop = if self.stop_gradient() { "True" } else { "False" };
        let mut text = format!(
            "{PREFIX}shape=[{}], dtype={}, place={}, stop_gradient={stop}",
            shape.join(", "),
            self.dtype(),
            place_name(self.device())
        );
        if self.device() == Device::Meta {
            return text + ")";
        }
        text.push_str(",\n");
        text.push_str(&" ".repeat(PREFIX.len()));
        crate::dispatch::reading(self, "print", || {
            let data = self.values();
            let view = data.view();
            let mut page = Page {
                values: view.data,
                shape: view.shape,
                strides: view.strides,
                options,
                short: self.numel() > options.threshold,
                width: 0,
                signed: false,
            };
            page.measure(0, view.offset as isize);
            page.write(&mut text, 0, view.offset as isize);
        });
        text + ")"
    }
}

/// One tensor on its way to text.
struct Page<'a> {
    values: AnySlice<'a>,
    shape: &'a [usize],
    strides: &'a [isize],
    options: &'a PrintOptions,
    /// Are long axes shortened?
    short: bool,
    /// Characters of the longest element.
    width: usize,
    /// Is an element negative? Then the others leave room for the sign.
    signed: bool,
}

impl Page<'_> {
    /// The positions of an axis that are shown, and after how many of them the dots stand.
    fn shown(&self, n: usize, short: bool) -> (Vec<usize>, Option<usize>) {
        let edge = self.options.edgeitems;
        if short && n > 2 * edge {
            ((0..edge).chain(n - edge..n).collect(), Some(edge))
        } else {
            ((0..n).collect(), None)
        }
    }

    /// Finds width and sign from the ends of every axis, as Paddle does even where the whole is printed.
    fn measure(&mut self, axis: usize, at: isize) {
        if self.shape.contains(&0) {
            return;
        }
        if axis == self.shape.len() {
            let v = self.values.get(at as usize);
            self.signed |= negative(v);
            self.width = self.width.max(number(v, self.options).len());
            return;
        }
        for i in self.shown(self.shape[axis], true).0 {
            self.measure(axis + 1, at + i as isize * self.strides[axis]);
        }
    }

    fn write(&self, text: &mut String, axis: usize, at: isize) {
        if axis == self.shape.len() {
            return text.push_str(&self.padded(self.values.get(at as usize)));
        }
        let (shown, dots) = self.shown(self.shape[axis], self.short);
        let last = axis + 1 == self.shape.len();
        let indent = PREFIX.len() + axis;
        let per_line = (self.options.linewidth.saturating_sub(indent) / (self.width + 2)).max(1);
        let mut count = 0;
        let mut separate = |text: &mut String| {
            if count > 0 {
                let lines = match last {
                    true if count % per_line == 0 => 1,
                    true => 0,
                    false => self.shape.len() - axis - 1,
                };
                text.push(',');
                text.push_str(&"\n".repeat(lines));
                text.push_str(&" ".repeat(if lines > 0 { indent + 1 } else { 1 }));
            }
            count += 1;
        };
        text.push('[');
        for k in 0..=shown.len() {
            if dots == Some(k) {
                separate(text);
                text.push_str("...");
            }
            if let Some(&i) = shown.get(k) {
                separate(text);
                self.write(text, axis + 1, at + i as isize * self.strides[axis]);
            }
        }
        text.push(']');
    }

    fn padded(&self, v: Scalar) -> String {
        let item = number(v, self.options);
        if self.width <= item.len() {
            item
        } else if self.signed && !negative(v) {
            format!(" {item:<w$}", w = self.width - 1)
        } else {
            format!("{item:<w$}", w = self.width)
        }
    }
}

/// Complex numbers compare by their real parts first, as in NumPy.
fn negative(v: Scalar) -> bool {
    match v {
        Scalar::Complex(z) => z.re < 0.0 || z.re == 0.0 && z.im < 0.0,
        other => other.to_f64() < 0.0,
    }
}

fn number(v: Scalar, options: &PrintOptions) -> String {
    match v {
        Scalar::Bool(b) => if b { "True" } else { "False" }.into(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Float(f) if !options.sci_mode && f.ceil() == f => format!("{f:.0}."), // the point tells it from an integer
        Scalar::Float(f) => digits(f, options),
        Scalar::Complex(z) => {
            let plus = if z.im >= 0.0 { "+" } else { "" };
            format!("({}{plus}{}j)", digits(z.re, options), digits(z.im, options))
        }
    }
}

fn digits(v: f64, options: &PrintOptions) -> String {
    let digits = options.precision;
    if v.is_nan() {
        return "nan".into();
    }
    if !options.sci_mode || v.is_infinite() {
        return format!("{v:.digits$}");
    }
    // At least two digits of exponent, always signed.
    let text = format!("{v:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{size:0>2}")
}

impl fmt::Display for Tensor {
    /// `{:.3}` prints three digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = print_options();
        options.precision = f.precision().unwrap_or(options.precision);
        f.write_str(&self.to_string_with(&options))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
