//! The operations that formulas are made of. Each is one precompiled vector loop on the CPU and one function on a device.

/// Writes an enum of operations with their names.
macro_rules! operations {
    ($(#[$m:meta])* $kind:ident { $($(#[doc = $doc:literal])* $name:ident = $text:literal,)* }) => {
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// Every operation of this kind.
            pub const ALL: &'static [$kind] = &[$($kind::$name),*];

            /// Its name, in formulas and in device code.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$name => $text),* }
            }
        }
    };
}

operations! {
    /// Operations on one number.
    Unary {
        /// `-x`
        Neg = "neg",
        /// The magnitude.
        Abs = "abs",
        /// −1, 0 or 1; NaN stays NaN. Of a complex number `z / |z|`.
        Sign = "sign",
        /// `1 / x`
        Recip = "recip",
        /// The square root.
        Sqrt = "sqrt",
        /// One over the square root.
        Rsqrt = "rsqrt",
        /// eˣ
        Exp = "exp",
        /// 2ˣ
        Exp2 = "exp2",
        /// eˣ − 1, exact near 0.
        Expm1 = "expm1",
        /// The natural logarithm.
        Ln = "ln",
        /// The logarithm to base 2.
        Log2 = "log2",
        /// The logarithm to base 10.
        Log10 = "log10",
        /// ln(1 + x), exact near 0.
        Log1p = "log1p",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Tangent.
        Tan = "tan",
        /// Arc sine.
        Asin = "asin",
        /// Arc cosine.
        Acos = "acos",
        /// Arc tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Inverse hyperbolic sine.
        Asinh = "asinh",
        /// Inverse hyperbolic cosine.
        Acosh = "acosh",
        /// Inverse hyperbolic tangent.
        Atanh = "atanh",
        /// 1 / (1 + e⁻ˣ)
        Sigmoid = "sigmoid",
        /// ln(1 + eˣ), without overflow.
        Softplus = "softplus",
        /// The error function.
        Erf = "erf",
        /// Its inverse.
        Erfinv = "erfinv",
        /// ln |Γ(x)|
        Lgamma = "lgamma",
        /// Its derivative.
        Digamma = "digamma",
        /// Modified Bessel function of order 0.
        I0 = "i0",
        /// The same times e⁻|ˣ|.
        I0e = "i0e",
        /// Modified Bessel function of order 1.
        I1 = "i1",
        /// The same times e⁻|ˣ|.
        I1e = "i1e",
        /// Largest integer not above.
        Floor = "floor",
        /// Smallest integer not below.
        Ceil = "ceil",
        /// Nearest integer, ties to even.
        Round = "round",
        /// Towards zero.
        Trunc = "trunc",
        /// The mantissa, between one half and one.
        Mantissa = "mantissa",
        /// The exponent that belongs to the mantissa.
        Exponent = "exponent",
        /// Is it NaN?
        IsNan = "is_nan",
        /// Is it infinite?
        IsInf = "is_inf",
        /// Is it a number, and not infinite?
        IsFinite = "is_finite",
        /// Is its sign bit set?
        SignBit = "sign_bit",
        /// Is it zero?
        Not = "not",
        /// All bits turned.
        BitNot = "bit_not",
        /// The complex conjugate; a real number itself.
        Conj = "conj",
        /// The real part.
        Re = "re",
        /// The imaginary part.
        Im = "im",
        /// The angle of a complex number.
        Angle = "angle",
    }
}

operations! {
    /// Operations on two numbers.
    Binary {
        /// `x + y`
        Add = "add",
        /// `x - y`
        Sub = "sub",
        /// `x * y`
        Mul = "mul",
        /// `x * y`, and zero wherever one of them is, also if the other is infinite: for a factor that vanishes faster than
        /// the other grows.
        Times = "times",
        /// `x / y`
        Div = "div",
        /// `x` to the power `y`.
        Pow = "pow",
        /// The angle of the point (`y`, `x`).
        Atan2 = "atan2",
        /// The length of the vector (`x`, `y`).
        Hypot = "hypot",
        /// The smaller; NaN if either is.
        Min = "min",
        /// The larger; NaN if either is.
        Max = "max",
        /// The smaller; the other one where one is NaN.
        Fmin = "fmin",
        /// The larger; the other one where one is NaN.
        Fmax = "fmax",
        /// What is left after whole `y`, with the sign of `y`.
        Remainder = "remainder",
        /// What is left after whole `y`, with the sign of `x`.
        Fmod = "fmod",
        /// The quotient rounded down.
        FloorDiv = "floor_div",
        /// The magnitude of `x` with the sign of `y`.
        Copysign = "copysign",
        /// The next number after `x` towards `y`.
        NextAfter = "next_after",
        /// `x < y`
        Lt = "lt",
        /// `x <= y`
        Le = "le",
        /// `x > y`
        Gt = "gt",
        /// `x >= y`
        Ge = "ge",
        /// `x == y`
        Eq = "eq",
        /// `x != y`
        Ne = "ne",
        /// Are both true?
        And = "and",
        /// Is one of them true?
        Or = "or",
        /// The bits that both have.
        BitAnd = "bit_and",
        /// The bits that one of them has.
        BitOr = "bit_or",
        /// The bits that just one of them has.
        BitXor = "bit_xor",
        /// `x` shifted up by `y` bits.
        Shl = "shl",
        /// `x` shifted down by `y` bits.
        Shr = "shr",
        /// The complex number with the real parts of `x` and `y` as its parts.
        Complex = "complex",
        /// Greatest common divisor.
        Gcd = "gcd",
        /// Least common multiple.
        Lcm = "lcm",
        /// Polygamma function of order `x` at `y`.
        Polygamma = "polygamma",
        /// Lower incomplete gamma function, regularised.
        Gammainc = "gammainc",
        /// Upper incomplete gamma function, regularised.
        Gammaincc = "gammaincc",
    }
}

impl Unary {
    /// Does it make integers of integers?
    pub const fn keeps_integers(self) -> bool {
        use Unary::*;
        self.is_truth() || matches!(self, Neg | Abs | Sign | Floor | Ceil | Round | Trunc | BitNot | Conj | Re)
    }

    /// Does it give a truth value?
    pub const fn is_truth(self) -> bool {
        matches!(self, Unary::IsNan | Unary::IsInf | Unary::IsFinite | Unary::SignBit | Unary::Not)
    }
}

impl Binary {
    /// Does it make integers of integers?
    pub const fn keeps_integers(self) -> bool {
        use Binary::*;
        let arithmetic =
            matches!(self, Add | Sub | Mul | Times | Min | Max | Fmin | Fmax | Remainder | Fmod | FloorDiv);
        let bits = matches!(self, BitAnd | BitOr | BitXor | Shl | Shr | Gcd | Lcm);
        self.is_truth() || arithmetic || bits
    }

    /// Does it give a truth value?
    pub const fn is_truth(self) -> bool {
        use Binary::*;
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne | And | Or)
    }
}
