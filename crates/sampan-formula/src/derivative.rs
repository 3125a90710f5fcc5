//! Derivatives, written as formulas: the chain rule from the result back to the inputs, with one rule for each operation.

use crate::expression::{self, Number, Source, select};
use crate::formula::{Formula, Pullback};
use crate::operation::{Binary, Unary};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

/// The derivative by each input.
pub(crate) fn all(f: &Formula) -> Vec<Formula> {
    let (values, by) = expression::write(f.values(), || {
        let one = Number::from(1.0);
        walk(f, one, false).into_iter().map(|n| n.unwrap_or_else(|| 0.0.into())).collect::<Vec<_>>()
    });
    by.into_iter().map(|n| Formula::new(&values.list, n.0, f.inputs(), f.captured())).collect()
}

/// How the gradient of the result becomes that of each input.
pub(crate) fn pullbacks(f: &Formula, complex: bool) -> Vec<Pullback> {
    let (result, gradient) = (f.inputs(), f.inputs() + 1);
    let (values, by) = expression::write(f.values(), || {
        let g = Number::new(Source::Input(gradient));
        walk(f, g, complex).into_iter().map(|n| n.unwrap_or_else(|| 0.0.into())).collect::<Vec<_>>()
    });
    // The result itself may stand in for what it is made of: the gradient of eˣ needs no eˣ again, and no x.
    let mut known = values.list.clone();
    known[f.result()] = Source::Input(result);
    by.into_iter()
        .map(|n| {
            let from_inputs = Formula::new(&values.list, n.0, f.inputs() + 2, f.captured());
            let from_result = Formula::new(&known, n.0, f.inputs() + 2, f.captured());
            let enough = !(0..f.inputs()).any(|i| from_result.reads(i));
            let chosen = if enough { from_result } else { from_inputs };
            let reads: Vec<usize> = (0..f.inputs() + 2).filter(|&i| chosen.reads(i)).collect();
            let place = |i: usize| reads.iter().position(|&r| r == i).expect("it reads it");
            let renamed: Vec<Source> = chosen
                .values()
                .iter()
                .map(|&s| if let Source::Input(i) = s { Source::Input(place(i)) } else { s })
                .collect();
            Pullback { formula: Formula::new(&renamed, chosen.result(), reads.len(), f.captured()), reads }
        })
        .collect()
}

/// The gradient by each input, given that of the result; `None` where it is zero.
fn walk(f: &Formula, seed: Number, complex: bool) -> Vec<Option<Number>> {
    let values = f.values();
    let mut gradient: Vec<Option<Number>> = vec![None; values.len()];
    gradient[f.result()] = Some(seed);
    let vanishing = vanishing(values);
    let mut by_input = vec![None; f.inputs()];
    for at in (0..values.len()).rev() {
        let Some(g) = gradient[at] else { continue };
        if let Source::Input(i) = values[at] {
            by_input[i] = Some(g);
        }
        let rule = Rule { value: Number(at), g, complex, vanishing: vanishing[at] };
        for (operand, share) in rule.shares(values[at]) {
            // Constants have no gradient, and what depends on them alone has none either.
            if Number(operand).varies() {
                let sum = gradient[operand].map_or(share, |sum| plus(sum, share));
                gradient[operand] = Some(sum);
            }
        }
    }
    by_input
}

/// The values inside a factor of [`Binary::Times`] or one side of a choice: there a gradient of zero ends the chain, however
/// large the slopes on the way are.
fn vanishing(values: &[Source]) -> Vec<bool> {
    let mut marked = vec![false; values.len()];
    for at in (0..values.len()).rev() {
        use Binary::{Fmax, Fmin, Max, Min, Times};
        let chooses = matches!(values[at], Source::Binary(Times | Min | Max | Fmin | Fmax, ..) | Source::Select(..));
        if marked[at] || chooses {
            values[at].operands().for_each(|o| marked[o] = true);
        }
    }
    marked
}

// ---- arithmetic that leaves out what changes nothing ----

fn plus(a: Number, b: Number) -> Number {
    match (a.literal(), b.literal()) {
        (Some(0.0), _) => b,
        (_, Some(0.0)) => a,
        (Some(x), Some(y)) => (x + y).into(),
        _ if a == b => 2.0 * a,
        _ => a + b,
    }
}

fn minus(a: Number) -> Number {
    match (a.literal(), a.source()) {
        (Some(x), _) => (-x).into(),
        (_, Source::Unary(Unary::Neg, inner)) => Number(inner),
        _ => -a,
    }
}

fn product(a: Number, b: Number) -> Number {
    match (a.literal(), b.literal()) {
        (Some(1.0), _) => b,
        (_, Some(1.0)) => a,
        (Some(-1.0), _) => minus(b),
        (_, Some(-1.0)) => minus(a),
        (Some(x), Some(y)) => (x * y).into(),
        _ => a * b,
    }
}

fn quotient(a: Number, b: Number) -> Number {
    match (a.literal(), b.literal()) {
        (_, Some(1.0)) => a,
        (Some(x), Some(y)) => (x / y).into(),
        (Some(1.0), _) => b.recip(),
        _ => a / b,
    }
}

/// The rule of one operation: what part of its gradient each operand gets.
struct Rule {
    value: Number,
    g: Number,
    complex: bool,
    vanishing: bool,
}

impl Rule {
    /// The conjugate of a slope, where numbers are complex.
    fn conj(&self, slope: Number) -> Number {
        if self.complex && slope.literal().is_none() { slope.conj() } else { slope }
    }

    /// The gradient times a slope.
    fn by(&self, slope: Number) -> Number {
        let slope = self.conj(slope);
        if self.vanishing && slope.varies() { self.g.times(slope) } else { product(self.g, slope) }
    }

    /// The gradient divided by what the slope is one over.
    fn over(&self, inverse: Number) -> Number {
        let inverse = self.conj(inverse);
        match self.vanishing && inverse.varies() {
            true => self.g.times(inverse.recip()),
            false => quotient(self.g, inverse),
        }
    }

    fn shares(&self, source: Source) -> Vec<(usize, Number)> {
        match source {
            Source::Input(_) | Source::Captured(_) | Source::Literal(_) => vec![],
            Source::Unary(op, a) => self.unary(op, Number(a)).map(|share| (a, share)).into_iter().collect(),
            Source::Binary(op, a, b) => {
                let (left, right) = self.binary(op, Number(a), Number(b));
                left.map(|s| (a, s)).into_iter().chain(right.map(|s| (b, s))).collect()
            }
            Source::Select(c, a, b) => {
                let condition = Number(c);
                vec![(a, select(condition, self.g, 0.0)), (b, select(condition, 0.0, self.g))]
            }
        }
    }

    fn unary(&self, op: Unary, x: Number) -> Option<Number> {
        let y = self.value;
        let less_square = |x: Number| (1.0 - x) * (x + 1.0);
        Some(match op {
            Unary::Neg => minus(self.g),
            // Not conjugated: the magnitude grows along the number.
            Unary::Abs => product(self.g, x.sign()),
            Unary::Recip => minus(self.by(y * y)),
            Unary::Sqrt if self.vanishing => self.over(y * 2.0),
            Unary::Sqrt => quotient(product(self.g, 0.5.into()), self.conj(y)),
            Unary::Rsqrt => self.by(-0.5 * (y * y * y)),
            Unary::Exp => self.by(y),
            Unary::Exp2 => self.by(y * LN_2),
            Unary::Expm1 => self.by(x.exp()),
            Unary::Ln => self.over(x),
            Unary::Log2 => self.over(x * LN_2),
            Unary::Log10 => self.over(x * LN_10),
            Unary::Log1p => self.over(x + 1.0),
            Unary::Sin => self.by(x.cos()),
            Unary::Cos => minus(self.by(x.sin())),
            Unary::Tan => self.by(y * y + 1.0),
            Unary::Asin => self.by(less_square(x).rsqrt()),
            Unary::Acos => minus(self.by(less_square(x).rsqrt())),
            Unary::Atan => self.over(x * x + 1.0),
            Unary::Sinh => self.by(x.cosh()),
            Unary::Cosh => self.by(x.sinh()),
            Unary::Tanh => self.by(1.0 - y * y),
            // The square would overflow long before the length does; a complex number has no other way.
            Unary::Asinh if !self.complex => self.over(x.hypot(1.0)),
            Unary::Asinh => self.by((x * x + 1.0).rsqrt()),
            // The root of the product has another cut than the product of the roots, and overflows.
            Unary::Acosh => self.over((x - 1.0).sqrt() * (x + 1.0).sqrt()),
            Unary::Atanh => self.over(less_square(x)),
            Unary::Sigmoid => self.by(y * (1.0 - y)),
            Unary::Softplus => self.by(x.sigmoid()),
            Unary::Erf => self.by((-(x * x)).exp() * FRAC_2_SQRT_PI),
            Unary::Erfinv => self.by((y * y).exp() / FRAC_2_SQRT_PI),
            Unary::Lgamma => self.by(x.digamma()),
            Unary::Digamma => self.by(Number::from(1.0).polygamma_at(x)),
            Unary::I0 => self.by(x.i1()),
            Unary::I0e => self.by(x.i1e() - x.sign() * y),
            Unary::I1 => self.by(x.i0() - select(x.equals(0.0), 0.5, y / x)),
            Unary::I1e => self.by(x.i0e() - x.sign() * y - select(x.equals(0.0), 0.5, y / x)),
            Unary::Conj if self.complex => self.g.conj(),
            Unary::Re if self.complex => self.g.re(),
            Unary::Conj | Unary::Re => self.g,
            Unary::Im | Unary::Angle => panic!("{} has no derivative as a formula", op.name()),
            Unary::Sign if self.complex => panic!("sign has no derivative over complex numbers"),
            // Steps: the slope is zero wherever there is one.
            _ => return None,
        })
    }

    fn binary(&self, op: Binary, x: Number, y: Number) -> (Option<Number>, Option<Number>) {
        let (g, value) = (self.g, self.value);
        match op {
            Binary::Add => (Some(g), Some(g)),
            Binary::Sub => (Some(g), Some(minus(g))),
            Binary::Mul | Binary::Times => (Some(self.by(y)), Some(self.by(x))),
            // Divided twice: the square may overflow or vanish.
            Binary::Div => {
                let part = self.by(value);
                let share = Rule { g: part, ..*self }.over(y);
                (Some(self.over(y)), Some(minus(share)))
            }
            Binary::Pow => (Some(self.by(x.pow(y - 1.0).times(y))), Some(self.by(x.ln().times(value)))),
            Binary::Atan2 => {
                // Divided by the length twice: its square may overflow or vanish. The origin has no slope.
                let length = x.hypot(y);
                let length = select(length.equals(0.0), 1.0, length);
                let part = |v: Number| quotient(self.by(v / length), length);
                (Some(part(y)), Some(minus(part(x))))
            }
            Binary::Hypot => (Some(self.by(x / value)), Some(self.by(y / value))),
            Binary::Min => self.winner(x.lt(y)),
            Binary::Max => self.winner(x.gt(y)),
            Binary::Fmin => self.winner(x.le(y).or(y.is_nan())),
            Binary::Fmax => self.winner(x.ge(y).or(y.is_nan())),
            Binary::Remainder => (Some(g), Some(minus(self.by(x.floor_div(y))))),
            Binary::Fmod => (Some(g), Some(minus(self.by((x / y).trunc())))),
            Binary::Copysign => (Some(self.by(x.sign() * Number::from(1.0).copysign(y))), None),
            Binary::NextAfter => (Some(g), None),
            Binary::Polygamma => (None, Some(self.by((x + 1.0).polygamma_at(y)))),
            Binary::Gammainc => (None, Some(self.by(gamma_density(x, y)))),
            Binary::Gammaincc => (None, Some(minus(self.by(gamma_density(x, y))))),
            _ => (None, None),
        }
    }

    /// All of the gradient goes to the one that was taken.
    fn winner(&self, first: Number) -> (Option<Number>, Option<Number>) {
        (Some(select(first, self.g, 0.0)), Some(select(first, 0.0, self.g)))
    }
}

/// The density of the gamma distribution.
fn gamma_density(shape: Number, x: Number) -> Number {
    ((shape - 1.0) * x.ln() - x - shape.lgamma()).exp()
}

#[cfg(test)]
mod tests {
    use crate::formula;

    #[test]
    fn derivatives_read_as_one_would_write_them() {
        let f = formula!(|x| x.exp());
        assert_eq!(f.formula().derivative(0).to_string(), "exp(x)");
        let f = formula!(|x, y| x * y + x);
        assert_eq!(f.formula().derivative(0).to_string(), "1 + y");
        assert_eq!(f.formula().derivative(1).to_string(), "x");
        let f = formula!(|x| x.ln());
        assert_eq!(f.formula().derivative(0).to_string(), "recip(x)");
        let slope = 0.5;
        let f = formula!(|x; slope| select(x.gt(0.0), x, x * slope));
        assert_eq!(f.formula().derivative(0).to_string(), "select(gt(x, 0), 1, 0) + select(gt(x, 0), 0, 1) * c0");
    }

    #[test]
    fn the_result_stands_in_where_that_is_enough() {
        let f = formula!(|x| x.tanh());
        let back = &f.formula().pullbacks(false)[0];
        assert_eq!(back.reads, [1, 2]);
        assert_eq!(back.formula.to_string(), "y * (1 - x * x)");
        let f = formula!(|x| x.sin());
        assert_eq!(f.formula().pullbacks(false)[0].reads, [0, 2]);
        assert_eq!(f.formula().pullbacks(true)[0].formula.to_string(), "y * conj(cos(x))");
        let f = formula!(|x, y| x + y);
        assert_eq!(f.formula().pullbacks(false)[1].formula.is_input(), Some(0));
    }
}
