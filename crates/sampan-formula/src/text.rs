//! Formulas as device text, for a compiler at run time (NVRTC). [`PRELUDE`] holds the operations; a formula becomes a
//! function that calls them, or a kernel that walks over arrays.

use crate::dtype::DType;
use crate::expression::Source;
use crate::formula::Formula;
use std::fmt::Write;

/// The operations that the text of every formula calls.
pub const PRELUDE: &str = include_str!("prelude.cu");

/// How elements of a dtype are spelt on a device.
trait Spelt {
    /// As they lie in memory.
    fn memory(self) -> &'static str;
    /// As they are computed.
    fn compute(self) -> &'static str;
    /// As constants are combined, so that they are rounded once, as on the CPU.
    fn exact(self) -> &'static str;
    /// An element that was read, in the type that is computed in.
    fn load(self, value: &str, compute: DType) -> String;
    /// A result, as it lies in memory.
    fn store(self, value: &str, compute: DType) -> String;
}

impl Spelt for DType {
    fn memory(self) -> &'static str {
        match self {
            DType::Bool | DType::UInt8 => "unsigned char",
            DType::Int8 => "signed char",
            DType::Int16 => "short",
            DType::Int32 => "int",
            DType::Float16 | DType::BFloat16 => "unsigned short",
            other => other.compute(),
        }
    }

    fn compute(self) -> &'static str {
        match self {
            DType::Float16 | DType::BFloat16 | DType::Float32 => "float",
            DType::Float64 => "double",
            DType::Complex64 => "c64",
            DType::Complex128 => "c128",
            _ => "i64",
        }
    }

    fn exact(self) -> &'static str {
        match self.compute() {
            "float" => "double",
            "c64" => "c128",
            other => other,
        }
    }

    fn load(self, value: &str, compute: DType) -> String {
        let wide = match self {
            DType::Bool => format!("(i64)({value} != 0)"),
            DType::Float16 => format!("from_f16({value})"),
            DType::BFloat16 => format!("from_bf16({value})"),
            _ => value.to_string(),
        };
        format!("to<{}>({wide})", compute.compute())
    }

    fn store(self, value: &str, compute: DType) -> String {
        let real = |to: &str| format!("to<{to}>({value})");
        let floating = matches!(compute.compute(), "float" | "double");
        let bounds = match self {
            DType::UInt8 => Some(("0.0", "255.0")),
            DType::Int8 => Some(("-128.0", "127.0")),
            DType::Int16 => Some(("-32768.0", "32767.0")),
            DType::Int32 => Some(("-2147483648.0", "2147483647.0")),
            DType::Int64 => Some(("-9223372036854775808.0", "9223372036854774784.0")),
            _ => None,
        };
        match (self, bounds) {
            (DType::Bool, _) => format!("(unsigned char)holds({value})"),
            (DType::Float16, _) => format!("to_f16({})", real("float")),
            (DType::BFloat16, _) => format!("to_bf16({})", real("float")),
            (_, Some((low, high))) if floating => format!("({})clamp_to({value}, {low}, {high})", self.memory()),
            _ => real(self.memory()),
        }
    }
}

/// A device function `name(x0, x1, …, c0, c1, …)` over numbers of the compute type and constants of the exact one.
pub fn function(formula: &Formula, name: &str, compute: DType) -> String {
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

/// How an input of a kernel is walked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Walk {
    /// Element by element.
    Flat,
    /// Along the strides that the kernel is given.
    Strided,
    /// The same element for all.
    One,
}

/// A kernel over contiguous arrays of `n` elements, with [`function`] inside: `name(n, x0, x1, …, y, c0, c1, …)`.
pub fn kernel(formula: &Formula, name: &str, compute: DType, inputs: &[DType], output: DType) -> String {
    let flat: Vec<_> = inputs.iter().map(|&t| (t, Walk::Flat)).collect();
    walking_kernel(formula, name, compute, &flat, 0, (output, Walk::Flat))
}

/// A kernel over `rank` axes whose inputs and output may have strides: `name(n, shape and strides, x0, …, y, c0, …)`. The second
/// argument, which is left out for a rank of zero, is the extents and after them the strides of each strided input and of the
/// output, in 64-bit words.
pub fn walking_kernel(
    formula: &Formula,
    name: &str,
    compute: DType,
    inputs: &[(DType, Walk)],
    rank: usize,
    output: (DType, Walk),
) -> String {
    assert_eq!(formula.inputs(), inputs.len(), "one type for each input");
    let body = format!("{name}_of");
    let walks: Vec<Walk> = inputs.iter().map(|i| i.1).chain([output.1]).collect();
    let output = output.0;
    let strided: Vec<usize> = (0..walks.len()).filter(|&i| walks[i] == Walk::Strided).collect();
    let mut text = function(formula, &body, compute);
    let words = rank * (1 + strided.len());
    let mut arguments = vec!["i64 n".to_string()];
    if words > 0 {
        writeln!(text, "struct {name}_walk {{ i64 at[{words}]; }};").expect("a string takes all");
        arguments.push(format!("{name}_walk w"));
    }
    arguments.extend(inputs.iter().enumerate().map(|(i, (t, _))| format!("const {}* __restrict__ a{i}", t.memory())));
    arguments.push(format!("{}* __restrict__ y", output.memory()));
    arguments.extend((0..formula.captured()).map(|i| format!("{} c{i}", compute.exact())));
    write!(
        text,
        "extern \"C\" __global__ void {name}({}) {{\n    begin();\n    \
         for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {{\n",
        arguments.join(", "),
    )
    .expect("a string takes all");
    if words > 0 {
        for i in &strided {
            writeln!(text, "        i64 o{i} = 0;").expect("a string takes all");
        }
        // Extents fit into 32 bits wherever the whole does, and such divisions are much shorter.
        for (index, condition) in [("unsigned", "if (n <= 0xffffffffll)"), ("i64", "else")] {
            writeln!(text, "        {condition} {{\n            {index} t = ({index})i;").expect("a string takes all");
            for axis in (0..rank).rev() {
                let step = if axis > 0 {
                    format!("{index} k = t % ({index})w.at[{axis}]; t /= ({index})w.at[{axis}];")
                } else {
                    format!("{index} k = t;")
                };
                let moves: String = strided
                    .iter()
                    .enumerate()
                    .map(|(place, i)| format!(" o{i} += k * w.at[{}];", (1 + place) * rank + axis))
                    .collect();
                writeln!(text, "            {{ {step}{moves} }}").expect("a string takes all");
            }
            writeln!(text, "        }}").expect("a string takes all");
        }
    }
    let place = |i: usize| match walks[i] {
        Walk::Flat => "i".to_string(),
        Walk::Strided => format!("o{i}"),
        Walk::One => "0".to_string(),
    };
    let values = inputs.iter().enumerate().map(|(i, (t, _))| t.load(&format!("a{i}[{}]", place(i)), compute));
    let call: Vec<String> = values.chain((0..formula.captured()).map(|i| format!("c{i}"))).collect();
    write!(
        text,
        "        {} r = {body}({});\n        y[{}] = {};\n    }}\n}}\n",
        compute.compute(),
        call.join(", "),
        place(inputs.len()),
        output.store("r", compute),
    )
    .expect("a string takes all");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula;

    #[test]
    fn a_kernel_reads_computes_and_writes() {
        let slope = 0.1;
        let f = formula!(|x; slope| select(x.gt(0.0), x, x * (2.0 * slope)));
        let text = kernel(f.formula(), "leaky", DType::Float32, &[DType::Float16], DType::Float16);
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

    #[test]
    fn strides_are_walked_from_the_last_axis() {
        let f = formula!(|x, y| x + y);
        let inputs = [(DType::Float32, Walk::Strided), (DType::Float32, Walk::One)];
        let text = walking_kernel(f.formula(), "add", DType::Float32, &inputs, 2, (DType::Float32, Walk::Flat));
        assert!(text.contains("struct add_walk { i64 at[4]; };") && text.contains("add(i64 n, add_walk w, "), "{text}");
        assert!(text.contains("k = t % (unsigned)w.at[1]; t /= (unsigned)w.at[1]; o0 += k * w.at[3];"), "{text}");
        assert!(text.contains("a0[o0]") && text.contains("a1[0]") && text.contains("y[i] ="), "{text}");
        let text = walking_kernel(f.formula(), "add", DType::Float32, &inputs, 2, (DType::Float32, Walk::Strided));
        assert!(text.contains("o2 += k * w.at[5];") && text.contains("y[o2] ="), "{text}");
    }
}
