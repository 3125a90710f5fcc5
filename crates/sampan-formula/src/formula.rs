//! Formulas: expressions that are complete.

use crate::expression::{self, Number, Source};
use crate::operation::{Binary, Unary};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Places for what others compute from a formula once, such as a program of vector loops for each number type.
const NOTES: usize = 8;

/// A function of a few numbers and captured constants. Cloning shares it.
#[derive(Clone)]
pub struct Formula(Arc<Inner>);

struct Inner {
    values: Vec<Source>,
    result: usize,
    inputs: usize,
    captured: usize,
    derivatives: OnceLock<Vec<Formula>>,
    pullbacks: [OnceLock<Vec<Pullback>>; 2],
    with_number: [OnceLock<Formula>; 3],
    notes: [OnceLock<Box<dyn Any + Send + Sync>>; NOTES],
}

/// The gradient by one input: a formula over the inputs, the result and the gradient of the result.
#[derive(Clone, Debug)]
pub struct Pullback {
    /// Over the numbers that [`Pullback::reads`] lists.
    pub formula: Formula,
    /// Input `i`, for `i` below the number of inputs; then the result; then the gradient of the result.
    pub reads: Vec<usize>,
}

impl Formula {
    /// Notes what `body` does with that many numbers and constants.
    pub fn write(inputs: usize, captured: usize, body: &dyn Fn(&[Number], &[Number]) -> Number) -> Formula {
        let (values, result) = expression::write(&[], || {
            let inputs: Vec<_> = (0..inputs).map(|i| Number::new(Source::Input(i))).collect();
            let captured: Vec<_> = (0..captured).map(|i| Number::new(Source::Captured(i))).collect();
            body(&inputs, &captured)
        });
        Formula::new(&values.list, result.0, inputs, captured)
    }

    /// Of these values, those that the result needs.
    pub(crate) fn new(values: &[Source], result: usize, inputs: usize, captured: usize) -> Formula {
        let mut needed = vec![false; values.len()];
        needed[result] = true;
        for at in (0..=result).rev() {
            if needed[at] {
                values[at].operands().for_each(|o| needed[o] = true);
            }
        }
        let mut place = vec![0; values.len()];
        let mut kept = Vec::new();
        for (at, source) in values.iter().enumerate().filter(|&(at, _)| needed[at]) {
            place[at] = kept.len();
            kept.push(source.map(|o| place[o]));
        }
        Formula(Arc::new(Inner {
            values: kept,
            result: place[result],
            inputs,
            captured,
            derivatives: OnceLock::new(),
            pullbacks: Default::default(),
            with_number: Default::default(),
            notes: Default::default(),
        }))
    }

    /// Its values, operands before what is made of them.
    pub fn values(&self) -> &[Source] {
        &self.0.values
    }

    /// Which of the values is the result.
    pub fn result(&self) -> usize {
        self.0.result
    }

    /// How many numbers it is over.
    pub fn inputs(&self) -> usize {
        self.0.inputs
    }

    /// How many constants it captured.
    pub fn captured(&self) -> usize {
        self.0.captured
    }

    /// Does the result depend on that input?
    pub fn reads(&self, input: usize) -> bool {
        self.0.values.contains(&Source::Input(input))
    }

    /// Is the result just one of the inputs?
    pub fn is_input(&self) -> Option<usize> {
        if let Source::Input(i) = self.0.values[self.0.result] { Some(i) } else { None }
    }

    /// Is the result zero, whatever the inputs are?
    pub fn is_zero(&self) -> bool {
        self.0.values[self.0.result] == Source::Literal(0.0)
    }

    /// Is the result a truth value?
    pub fn is_truth(&self) -> bool {
        match self.0.values[self.0.result] {
            Source::Unary(op, _) => op.is_truth(),
            Source::Binary(op, ..) => op.is_truth(),
            _ => false,
        }
    }

    /// Does it make integers of integers? A fraction that is written in it does not.
    pub fn keeps_integers(&self) -> bool {
        self.0.values.iter().all(|s| match s {
            Source::Unary(op, _) => op.keeps_integers(),
            Source::Binary(op, ..) => op.keeps_integers(),
            Source::Literal(v) => v.fract() == 0.0,
            _ => true,
        })
    }

    /// The formula of one of its values.
    pub fn part(&self, value: usize) -> Formula {
        Formula::new(&self.0.values, value, self.inputs(), self.captured())
    }

    /// An operation on a number of a formula that is being written.
    pub fn unary_of(op: Unary, x: Number) -> Number {
        Number::new(Source::Unary(op, x.0))
    }

    /// An operation on two numbers of a formula that is being written.
    pub fn binary_of(op: Binary, x: Number, y: Number) -> Number {
        Number::new(Source::Binary(op, x.0, y.0))
    }

    /// What somebody computes from the formula, once; `place` is theirs.
    pub fn note<T: Any + Send + Sync>(&self, place: usize, make: impl FnOnce(&Formula) -> T) -> &T {
        let note = self.0.notes[place].get_or_init(|| Box::new(make(self)));
        note.downcast_ref().expect("a place holds one kind of note")
    }

    /// The derivative of the real function by one of its inputs, a formula over the same numbers.
    pub fn derivative(&self, input: usize) -> &Formula {
        &self.0.derivatives.get_or_init(|| crate::derivative::all(self))[input]
    }

    /// How the gradient of the result becomes the gradient of each input; for complex numbers that is
    /// `∂L/∂re + i ∂L/∂im`.
    pub fn pullbacks(&self, complex: bool) -> &[Pullback] {
        self.0.pullbacks[complex as usize].get_or_init(|| crate::derivative::pullbacks(self, complex))
    }

    /// The formula whose input is one number for all elements: it is captured, after the other constants.
    pub fn with_number(&self, input: usize) -> &Formula {
        self.0.with_number[input].get_or_init(|| {
            Formula::write(self.inputs() - 1, self.captured() + 1, &|inputs, captured| {
                let mut all = inputs.to_vec();
                all.insert(input, captured[self.captured()]);
                self.replay(&all, captured, &mut rewrite)
            })
        })
    }

    /// One formula for `self` with `inner` in place of an input: the inputs of `inner` come after those that are left, and
    /// so do its captured constants.
    pub fn compose(&self, input: usize, inner: &Formula) -> Formula {
        let left = self.inputs() - 1;
        Formula::write(left + inner.inputs(), self.captured() + inner.captured(), &|inputs, captured| {
            let (mine, theirs) = (inputs[..left].to_vec(), &inputs[left..]);
            let inserted = inner.replay(theirs, &captured[self.captured()..], &mut rewrite);
            let mut all = mine;
            all.insert(input, inserted);
            self.replay(&all, &captured[..self.captured()], &mut rewrite)
        })
    }

    /// Computes the result from inputs and constants of any kind, operation by operation: numbers, tensors, nodes of a
    /// graph that is exported. `apply` is given each operation that is no input and no captured constant.
    pub fn replay<V: Clone>(&self, inputs: &[V], captured: &[V], apply: &mut impl FnMut(Source, &[V]) -> V) -> V {
        let mut done: Vec<V> = Vec::with_capacity(self.0.values.len());
        for &source in &self.0.values {
            let value = match source {
                Source::Input(i) => inputs[i].clone(),
                Source::Captured(i) => captured[i].clone(),
                other => {
                    let operands: Vec<V> = other.operands().map(|o| done[o].clone()).collect();
                    apply(other, &operands)
                }
            };
            done.push(value);
        }
        done.swap_remove(self.0.result)
    }

    /// With the names of its inputs and constants.
    fn show(&self, inputs: &[&str]) -> String {
        let inputs: Vec<Text> = (0..self.inputs()).map(|i| Text(inputs[i].to_string(), ATOM)).collect();
        let captured: Vec<Text> = (0..self.captured()).map(|i| Text(format!("c{i}"), ATOM)).collect();
        self.replay(&inputs, &captured, &mut |source, v| {
            let held = |t: &Text, most: u8| if t.1 > most { format!("({})", t.0) } else { t.0.clone() };
            let infix = |sign: &str, level: u8, right: u8| {
                Text(format!("{} {sign} {}", held(&v[0], level), held(&v[1], right)), level)
            };
            match source {
                Source::Literal(v) => Text(format!("{v}"), ATOM),
                Source::Unary(Unary::Neg, _) => Text(format!("-{}", held(&v[0], ATOM)), ATOM),
                Source::Binary(Binary::Add, ..) => infix("+", SUM, SUM),
                Source::Binary(Binary::Sub, ..) => infix("-", SUM, PRODUCT),
                Source::Binary(Binary::Mul, ..) => infix("*", PRODUCT, ATOM),
                Source::Binary(Binary::Div, ..) => infix("/", PRODUCT, ATOM),
                Source::Unary(op, _) => Text(format!("{}({})", op.name(), v[0].0), ATOM),
                Source::Binary(op, ..) => Text(format!("{}({}, {})", op.name(), v[0].0, v[1].0), ATOM),
                Source::Select(..) => Text(format!("select({}, {}, {})", v[0].0, v[1].0, v[2].0), ATOM),
                Source::Input(_) | Source::Captured(_) => unreachable!("replay answers these itself"),
            }
        })
        .0
    }
}

/// Writes the same operation into the formula that is being written.
pub(crate) fn rewrite(source: Source, operands: &[Number]) -> Number {
    let mut at = operands.iter();
    Number::new(match source {
        Source::Unary(op, _) => Source::Unary(op, operands[0].0),
        Source::Binary(op, ..) => Source::Binary(op, operands[0].0, operands[1].0),
        Source::Select(..) => {
            let mut next = || at.next().expect("three operands").0;
            Source::Select(next(), next(), next())
        }
        leaf => leaf,
    })
}

/// A part of a formula's text, and how loosely it holds together.
#[derive(Clone)]
struct Text(String, u8);
const ATOM: u8 = 0;
const PRODUCT: u8 = 1;
const SUM: u8 = 2;

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            (0..self.inputs()).map(|i| ["x", "y", "z"].get(i).map_or(format!("x{i}"), |s| s.to_string())).collect();
        f.write_str(&self.show(&names.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Equal if they do the same operations, in whatever order they were written down.
impl PartialEq for Formula {
    fn eq(&self, other: &Formula) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        if std::ptr::eq(a, b) {
            return true;
        }
        if a.inputs != b.inputs || a.captured != b.captured || a.values.len() != b.values.len() {
            return false;
        }
        // Equal operations on equal values are one number.
        let (_, same) = expression::write(&[], || {
            let inputs: Vec<_> = (0..a.inputs).map(|i| Number::new(Source::Input(i))).collect();
            let captured: Vec<_> = (0..a.captured).map(|i| Number::new(Source::Captured(i))).collect();
            self.replay(&inputs, &captured, &mut rewrite) == other.replay(&inputs, &captured, &mut rewrite)
        });
        same
    }
}

/// A captured constant as a formula is called with it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Constant {
    /// An integer, exact in formulas over integers.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

macro_rules! constant {
    ($($from:ty => $as:ty, $kind:ident),*) => {$(
        impl From<$from> for Constant {
            fn from(v: $from) -> Constant { Constant::$kind(v as $as) }
        }
    )*};
}
constant!(f64 => f64, Float, f32 => f64, Float, i64 => i64, Int, i32 => i64, Int, u32 => i64, Int, usize => i64, Int, bool => i64, Int);

/// A formula with values for its captured constants: what [`formula!`](crate::formula!) gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    formula: Formula,
    constants: Vec<Constant>,
}

impl Bound {
    /// A formula with its constants, one for each that it captured.
    pub fn new(formula: Formula, constants: Vec<Constant>) -> Bound {
        assert_eq!(formula.captured(), constants.len(), "one constant for each that the formula captured");
        Bound { formula, constants }
    }

    /// The formula.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// The values of its constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// See [`Formula::with_number`].
    pub fn with_number(&self, input: usize, number: Constant) -> Bound {
        let constants = self.constants.iter().copied().chain([number]).collect();
        Bound::new(self.formula.with_number(input).clone(), constants)
    }

    /// Another formula with the same constants.
    pub fn with(&self, formula: Formula) -> Bound {
        Bound::new(formula, self.constants.clone())
    }

    /// See [`Formula::compose`].
    pub fn compose(&self, input: usize, inner: &Bound) -> Bound {
        let constants = self.constants.iter().chain(&inner.constants).copied().collect();
        Bound::new(self.formula.compose(input, &inner.formula), constants)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.formula, f)
    }
}

/// A formula of the program's text, collected at link time: tests and device builds look at all of them.
pub struct Registered {
    /// Where it is written.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// The formula.
    pub get: fn() -> &'static Formula,
}
inventory::collect!(Registered);

/// Every formula that is written with `formula!`, in order of file and line.
pub fn registered() -> Vec<&'static Registered> {
    let mut all: Vec<_> = inventory::iter::<Registered>.into_iter().collect();
    all.sort_by_key(|r| (r.file, r.line));
    all
}

/// Turns an expression into a [`Bound`] formula: `formula!(|x| x.times(x.sigmoid()))`, `formula!(|x, y| x.atan2(y))`, with
/// captured constants `formula!(|x; slope| select(x.gt(0.0), x, x * slope))`. The expression is read once, when it is first
/// needed; what it captures may differ from call to call.
#[macro_export]
macro_rules! formula {
    (|$($x:ident),+ $(; $($constant:ident),+)?| $body:expr) => {{
        fn formula() -> &'static $crate::Formula {
            static FORMULA: ::std::sync::LazyLock<$crate::Formula> = ::std::sync::LazyLock::new(|| {
                const INPUTS: usize = [$(stringify!($x)),+].len();
                const CAPTURED: usize = <[&str]>::len(&[$($(stringify!($constant)),+)?]);
                $crate::Formula::write(INPUTS, CAPTURED, &|inputs, captured| {
                    #[allow(unused_imports)]
                    use $crate::select;
                    let &[$($x),+] = inputs else { unreachable!("one for each") };
                    let &[$($($constant),+)?] = captured else { unreachable!("one for each") };
                    $crate::Number::from($body)
                })
            });
            &FORMULA
        }
        $crate::inventory::submit!($crate::Registered { file: file!(), line: line!(), get: formula });
        $crate::Bound::new(formula().clone(), vec![$($($crate::Constant::from($constant)),+)?])
    }};
}
