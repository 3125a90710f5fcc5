//! Steps of an optimizer: one kernel for all parameters of a kind, whatever their number.

use crate::device::Device;
use crate::fault::Result;
use crate::launch::{Argument, Grid};
use crate::memory::Block;
use crate::spelling::{spelt, wide};
use sampan_formula::text::{self, PRELUDE};
use sampan_formula::{DType, Formula};
use std::fmt::Write;

/// Parameters that one kernel takes.
const MOST: usize = 24;
/// Elements that one block of threads takes.
const CHUNK: usize = 2048;

/// One parameter's part: all of one length, states (and master) in the type that is computed in.
pub struct Part<'a> {
    /// How many elements.
    pub len: usize,
    /// The parameter.
    pub param: &'a Block,
    /// Its gradient, and its first element.
    pub grad: (&'a Block, usize),
    /// A wider copy of a half-precision parameter.
    pub master: Option<&'a Block>,
    /// What the optimizer remembers, and the first element of each.
    pub states: Vec<(&'a Block, usize)>,
    /// The numbers of this parameter's step.
    pub constants: Vec<f64>,
    /// Where on the device they are when the work is done, if it is recorded.
    pub kept: Option<u64>,
    /// A float64 number on the device that the gradient is multiplied by first: the block and which of its elements.
    pub factor: Option<(&'a Block, usize)>,
}

/// Steps of parameters of one dtype by the same formulas: the new parameter, then each new state, over the parameter, its
/// gradient and the states. Nothing is changed if the word that `gate` is the address of is not zero when the work is done.
pub fn step(device: &Device, formulas: &[Formula], dtype: DType, parts: &[Part<'_>], gate: Option<u64>) -> Result<()> {
    let states = formulas.len() - 1;
    let constants = formulas[0].captured();
    let computed = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let masters = parts.iter().any(|p| p.master.is_some());
    for part in parts {
        let fits = |(block, offset): (&Block, usize), size: usize| (offset + part.len) * size <= block.len();
        let wide = computed.size();
        assert!(
            fits((part.param, 0), dtype.size())
                && fits(part.grad, dtype.size())
                && part.master.is_some() == masters
                && part.master.is_none_or(|m| fits((m, 0), wide))
                && part.states.len() == states
                && part.states.iter().all(|&s| fits(s, wide))
                && part.constants.len() == constants
                && part.factor.is_none_or(|(block, at)| (at + 1) * 8 <= block.len()),
            "parameter, gradient and states of one length"
        );
    }
    let number = *formulas[0].note(NOTE, |_| next_number());
    let key = format!("step {number} {dtype:?} {masters}");
    let kernel = device.kernel(&key, || (written(formulas, dtype, computed, masters), "step".into()))?;
    for group in parts.chunks(MOST) {
        // As the text's struct: lengths with the first chunk of each, addresses, then constants.
        let mut words: Vec<i64> = vec![gate.unwrap_or(0) as i64, group.len() as i64];
        let mut chunks = 0i64;
        for i in 0..MOST {
            words.push(chunks);
            chunks += group.get(i).map_or(0, |p| p.len.div_ceil(CHUNK) as i64);
        }
        words.extend((0..MOST).map(|i| group.get(i).map_or(0, |p| p.len as i64)));
        let at = |(block, offset): (&Block, usize), size: usize| (block.address() + (offset * size) as u64) as i64;
        for i in 0..MOST {
            let Some(p) = group.get(i) else {
                words.extend(std::iter::repeat_n(0, 5 + states));
                continue;
            };
            words.extend([at((p.param, 0), 1), at(p.grad, dtype.size()), p.master.map_or(0, |m| at((m, 0), 1))]);
            words.extend([p.kept.unwrap_or(0) as i64, p.factor.map_or(0, |f| at(f, 8))]);
            words.extend(p.states.iter().map(|&s| at(s, computed.size())));
        }
        for i in 0..MOST {
            match group.get(i) {
                Some(p) => words.extend(p.constants.iter().map(|c| c.to_bits() as i64)),
                None => words.extend(std::iter::repeat_n(0, constants)),
            }
        }
        if chunks > 0 {
            let grid = Grid { blocks: chunks as u32, parts: 1, threads: 256 };
            // SAFETY: the struct is laid out as the text has it; every array was found long enough above.
            unsafe { device.launch(kernel, grid, &mut [Argument::Words(words)])? };
        }
    }
    Ok(())
}

/// Where a formula keeps the number that names its kernel.
const NOTE: usize = 7;

fn next_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The text of the kernel.
pub(crate) fn written(formulas: &[Formula], dtype: DType, computed: DType, masters: bool) -> String {
    let states = formulas.len() - 1;
    let constants = formulas[0].captured();
    let (t, w) = (spelt(dtype), wide(computed));
    let mut text = [PRELUDE, crate::compile::TYPES].join("\n");
    for (i, formula) in formulas.iter().enumerate() {
        text += &text::function(formula, &format!("new{i}"), computed);
    }
    let list = |name: &str, n: usize| (0..n).map(|i| format!(", {name}{i}")).collect::<String>();
    let held: String = (0..states).map(|i| format!("*s{i}, ")).collect();
    let held = held.trim_end_matches(", ");
    let state_field = if states > 0 { format!("{w} {held};") } else { String::new() };
    write!(
        text,
        "struct part {{ {t}* p; const {t}* g; {w}* m; const double* c; const double* f; {state_field} }};\n\
         struct parts {{ const i64* gate; i64 count, first[{MOST}], len[{MOST}]; part at[{MOST}]; double c[{MOST}][{}]; }};\n\
         extern \"C\" __global__ void step(const __grid_constant__ parts all) {{\n    begin();\n    \
         if (all.gate && *all.gate) return;\n    \
         int k = 0;\n    while (k + 1 < all.count && all.first[k + 1] <= blockIdx.x) k++;\n    \
         const part a = all.at[k];\n    i64 start = (blockIdx.x - all.first[k]) * {CHUNK}ll;\n    \
         i64 end = start + {CHUNK} < all.len[k] ? start + {CHUNK} : all.len[k];\n    \
         for (i64 i = start + threadIdx.x; i < end; i += 256) {{\n",
        constants.max(1)
    )
    .expect("a string takes all");
    for i in 0..constants {
        writeln!(text, "        double c{i} = a.c ? a.c[{i}] : all.c[k][{i}];").expect("a string takes all");
    }
    let old = if masters { "a.m[i]".to_string() } else { "wide(a.p[i])".to_string() };
    writeln!(text, "        {w} x = {old}, g = wide(a.g[i]);").expect("a string takes all");
    writeln!(text, "        if (a.f) g = g * ({w})*a.f;").expect("a string takes all");
    for i in 0..states {
        writeln!(text, "        {w} s{i} = a.s{i}[i];").expect("a string takes all");
    }
    let call = format!("x, g{}{}", list("s", states), list("c", constants));
    for i in 0..=states {
        writeln!(text, "        {w} n{i} = new{i}({call});").expect("a string takes all");
    }
    if masters {
        text += "        a.m[i] = n0;\n";
    }
    writeln!(text, "        a.p[i] = narrow<{t}>(n0);").expect("a string takes all");
    for i in 0..states {
        writeln!(text, "        a.s{i}[i] = n{};", i + 1).expect("a string takes all");
    }
    text + "    }\n}\n"
}
