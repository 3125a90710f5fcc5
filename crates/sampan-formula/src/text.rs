//! Formulas as device text, for a compiler at run time (NVRTC). [`PRELUDE`] holds the operations; a formula becomes a
//! function that calls them, or a kernel that walks over arrays.

use crate::expression::Source;
use crate::formula::Formula;
use std::fmt::Write;

/// The operations that the text of every formula calls.
pub const PRELUDE: &str = include_str!("prelude.cu");

/// The element type of an array on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Type {
    Bool,
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl Type {
    /// Every type, with its name, the type it lies in memory as, and the type it is computed in.
    const ALL: [(Type, &'static str, &'static str, &'static str); 12] = [
        (Type::Bool, "bool", "unsigned char", "i64"),
        (Type::UInt8, "uint8", "unsigned char", "i64"),
        (Type::Int8, "int8", "signed char", "i64"),
        (Type::Int16, "int16", "short", "i64"),
        (Type::Int32, "int32", "int", "i64"),
        (Type::Int64, "int64", "i64", "i64"),
        (Type::Float16, "float16", "unsigned short", "float"),
        (Type::BFloat16, "bfloat16", "unsigned short", "float"),
        (Type::Float32, "float32", "float", "float"),
        (Type::Float64, "float64", "double", "double"),
        (Type::Complex64, "complex64", "c64", "c64"),
        (Type::Complex128, "complex128", "c128", "c128"),
    ];

    /// The type of a dtype's name.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.iter().find(|t| t.1 == name).map(|t| t.0)
    }

    fn memory(self) -> &'static str {
        Type::ALL[self as usize].2
    }

    fn compute(self) -> &'static str {
        Type::ALL[self as usize].3
    }

    /// The type that constants are combined in, so that they are rounded once, as on the CPU.
    fn exact(self) -> &'static str {
        match self.compute() {
            "float" => "double",
            "c64" => "c128",
            other => other,
        }
    }

    /// An element that was read, in the type that is computed in.
    fn load(self, value: &str, compute: Type) -> String {
        let wide = match self {
            Type::Bool => format!("(i64)({value} != 0)"),
            Type::Float16 => format!("from_f16({value})"),
            Type::BFloat16 => format!("from_bf16({value})"),
            _ => value.to_string(),
        };
        format!("to<{}>({wide})", compute.compute())
    }

    /// A result, as it lies in memory.
    fn store(self, value: &str, compute: Type) -> String {
        let real = |to: &str| format!("to<{to}>({value})");
        let floating = matches!(compute.compute(), "float" | "double");
        let bounds = match self {
            Type::UInt8 => Some(("0.0", "255.0")),
            Type::Int8 => Some(("-128.0", "127.0")),
            Type::Int16 => Some(("-32768.0", "32767.0")),
            Type::Int32 => Some(("-2147483648.0", "2147483647.0")),
            Type::Int64 => Some(("-9223372036854775808.0", "9223372036854774784.0")),
            _ => None,
        };
        match (self, bounds) {
            (Type::Bool, _) => format!("(unsigned char)holds({value})"),
            (Type::Float16, _) => format!("to_f16({})", real("float")),
            (Type::BFloat16, _) => format!("to_bf16({})", real("float")),
            (_, Some((low, high))) if floating => format!("({})clamp_to({value}, {low}, {high})", self.memory()),
            _ => real(self.memory()),
        }
    }
}

/// A device function `name(x0, x1, …, c0, c1, …)` over numbers of the compute type and constants of the exact one.
pub fn function(formula: &Formula, name: &str, compute: Type) -> String {
    let (real, exact) = (compute.compute(), compute.exact());
    let inputs = (0..formula.inputs()).map(|i| format!("{real} x{i}"));
    let constants = (0..formula.captured()).map(|i| format!("{exact} c{i}"));
    let arguments: Vec<String> = inputs.chain(constants).collect();
    let mut text = format!("__device__ __forceinline__ {real} {name}({}) {{\n", arguments.join(", "));
    // What depends on constants alone is computed in the exact type and rounded where it meets an input.
    let mut uniform: Vec<bool> = Vec::new();
    for source in formula.values() {
        uniform.push(!matches!(source, Source::Input(_)) && source.operands().all(|o| uniform[o]));
    }
    for (at, &source) in formula.values().iter().enumerate() {
        let ty = if uniform[at] { exact } else { real };
        let operand = |o: usize| match uniform[o] && !uniform[at] && exact != real {
            true => format!("to<{real}>(v{o})"),
            false => format!("v{o}"),
        };
        let value = match source {
            Source::Input(i) => format!("x{i}"),
            Source::Captured(i) => format!("c{i}"),
            Source::Literal(v) => literal(v, ty),
            Source::Unary(op, a) => format!("f_{}({})", op.name(), operand(a)),
            Source::Binary(op, a, b) => format!("f_{}({}, {})", op.name(), operand(a), operand(b)),
            Source::Select(c, a, b) => format!("f_select({}, {}, {})", operand(c), operand(a), operand(b)),
        };
        writeln!(text, "    {ty} v{at} = {value};").expect("a string takes all");
    }
    let result = formula.result();
    let value = match uniform[result] && exact != real {
        true => format!("to<{real}>(v{result})"),
        false => format!("v{result}"),
    };
    writeln!(text, "    return {value};\n}}").expect("a string takes all");
    text
}

fn literal(v: f64, ty: &str) -> String {
    let number = match v {
        v if v.is_nan() => "NAN".to_string(),
        v if v.is_infinite() => if v > 0.0 { "INFINITY" } else { "-INFINITY" }.to_string(),
        v => format!("{v:e}"),
    };
    match ty {
        "i64" => format!("{}LL", v as i64),
        "c64" | "c128" => format!("{{{number}, 0}}"),
        "float" => format!("(float)({number})"),
        _ => number,
    }
}

/// A kernel over contiguous arrays of `n` elements, with [`function`] inside: `name(n, x0, x1, …, y, c0, c1, …)`.
pub fn kernel(formula: &Formula, name: &str, compute: Type, inputs: &[Type], output: Type) -> String {
    assert_eq!(formula.inputs(), inputs.len(), "one type for each input");
    let body = format!("{name}_of");
    let arrays = inputs.iter().enumerate().map(|(i, t)| format!("const {}* __restrict__ a{i}", t.memory()));
    let constants = (0..formula.captured()).map(|i| format!("{} c{i}", compute.exact()));
    let arguments: Vec<String> =
        arrays.chain([format!("{}* __restrict__ y", output.memory())]).chain(constants).collect();
    let values = inputs.iter().enumerate().map(|(i, t)| t.load(&format!("a{i}[i]"), compute));
    let call: Vec<String> = values.chain((0..formula.captured()).map(|i| format!("c{i}"))).collect();
    format!(
        "{}extern \"C\" __global__ void {name}(i64 n, {}) {{\n    \
         for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {{\n        \
         {} r = {body}({});\n        y[i] = {};\n    }}\n}}\n",
        function(formula, &body, compute),
        arguments.join(", "),
        compute.compute(),
        call.join(", "),
        output.store("r", compute),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula;

    #[test]
    fn a_kernel_reads_computes_and_writes() {
        let slope = 0.1;
        let f = formula!(|x; slope| select(x.gt(0.0), x, x * (2.0 * slope)));
        let text = kernel(f.formula(), "leaky", Type::Float32, &[Type::Float16], Type::Float16);
        assert!(
            text.contains(
                "void leaky(i64 n, const unsigned short* __restrict__ a0, unsigned short* __restrict__ y, double c0)"
            ),
            "{text}"
        );
        assert!(text.contains("from_f16(a0[i])") && text.contains("y[i] = to_f16("), "{text}");
        // The constants are combined in double.
        assert!(text.contains("double v") && text.contains("to<float>("), "{text}");
    }
}
