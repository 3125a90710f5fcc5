//! Programs in Paddle's ops as graphs. What an op becomes is said in `ops`.

use super::ops;
use super::program::{Op, Program, Value, VarId};
use crate::graph::{Arg, Call, Dim, Graph, Id, Input, Known, Size, Weight};
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor, Value as Plain, op};
use std::collections::HashMap;

/// A graph that is being read.
pub(crate) struct Importer<'p> {
    pub program: &'p Program,
    pub graph: Graph,
    of: Vec<Option<Id>>,
    /// Variables that hold extents, and what these are.
    symbols: HashMap<VarId, Vec<Size>>,
    /// Variables that hold codes as floats, and those codes; variables that hold ranges of codes, and the steps.
    pub codes: HashMap<VarId, Id>,
    pub steps: HashMap<VarId, Id>,
    free: usize,
    /// Of a region: the variables that it takes from around it, in the order of its inputs.
    taken: Option<Vec<VarId>>,
}

fn damaged(message: String) -> Error {
    Error::invalid(message).in_op("load")
}

/// The graph of a program whose weights, in the order of their names, are these.
pub(crate) fn graph(program: &Program, tensors: Vec<Tensor>) -> Result<Graph> {
    let of = vec![None; program.vars.len()];
    let mut r = Importer {
        program,
        graph: Graph::default(),
        of,
        symbols: HashMap::new(),
        codes: HashMap::new(),
        steps: HashMap::new(),
        free: 0,
        taken: None,
    };
    let mut weights = (0..program.vars.len()).filter(|&v| program.vars[v].weight).collect::<Vec<_>>();
    weights.sort_by(|&a, &b| program.vars[a].name.cmp(&program.vars[b].name));
    if weights.len() != tensors.len() {
        let (names, count) = (weights.len(), tensors.len());
        return Err(damaged(format!("the program has {names} parameters, the file beside it holds {count}"))
            .hint("both files must be of one save"));
    }
    for (v, tensor) in weights.into_iter().zip(tensors) {
        let var = &program.vars[v];
        let fits = var.dims.len() == tensor.ndim()
            && var.dims.iter().zip(tensor.shape()).all(|(&d, &n)| d < 0 || d == n as i64);
        if var.dtype != tensor.dtype() || !fits {
            let (shape, dtype) = (tensor.shape(), tensor.dtype());
            return Err(damaged(format!(
                "parameter `{}` is {:?} {}, the file has {shape:?} {dtype}",
                var.name, var.dims, var.dtype
            )));
        }
        tensor.set_stop_gradient(!(var.trainable && tensor.dtype().is_inexact()));
        tensor.set_name(var.name.clone());
        tensor.set_persistable(true);
        let value = r.define(v);
        r.graph.weights.push(Weight { name: var.name.clone(), value, tensor, shared: true });
    }
    for &v in &program.feeds {
        let value = r.define(v);
        r.graph.inputs.push(Input { name: program.vars[v].name.clone(), value });
    }
    for (v, tensor) in &program.constants {
        if tensor.dtype().is_int() && tensor.ndim() <= 1 {
            let sizes = tensor.to_f64_vec().into_iter().map(|n| Size::fixed(n as i64)).collect();
            r.symbols.insert(*v, sizes);
        }
        let value = r.define(*v);
        let name = format!("constant_{value}");
        r.graph.weights.push(Weight { name, value, tensor: tensor.clone(), shared: false });
    }
    r.ops(&program.ops)?;
    r.graph.outputs = program.fetches.iter().map(|&v| r.id(v)).collect::<Result<_>>()?;
    r.graph.prune();
    Ok(r.graph)
}

impl<'p> Importer<'p> {
    /// Reads ops in order.
    pub fn ops(&mut self, ops: &[Op]) -> Result<()> {
        for op in ops {
            if !ops::read(self, op)? {
                let message = format!("`{}` as this program calls it has no counterpart here yet", op.schema.name);
                return Err(Error::new(Kind::Unimplemented, message).in_op("load"));
            }
        }
        Ok(())
    }

    /// A graph inside of this one, with these inputs. What it reads beside them becomes further inputs.
    pub fn inside(&self, args: &[VarId]) -> Result<Importer<'p>> {
        let of = vec![None; self.program.vars.len()];
        // Numbers that are written in the program are known there too.
        let plain = |(v, sizes): (&VarId, &Vec<Size>)| {
            sizes.iter().all(|s| s.as_fixed().is_some()).then(|| (*v, sizes.clone()))
        };
        let symbols = self.symbols.iter().filter_map(plain).collect();
        let graph = Graph::default();
        let mut inner = Importer {
            program: self.program,
            graph,
            of,
            symbols,
            codes: HashMap::new(),
            steps: HashMap::new(),
            free: self.free,
            taken: Some(vec![]),
        };
        for &v in args {
            inner.take(v);
        }
        inner.taken = Some(vec![]);
        Ok(inner)
    }

    /// A variable from around as an input.
    fn take(&mut self, var: VarId) -> Id {
        let value = self.define(var);
        self.graph.inputs.push(Input { name: self.program.vars[var].name.clone(), value });
        self.taken.get_or_insert_default().push(var);
        value
    }

    /// The graph, and the variables from around it.
    pub fn finished(self) -> (Graph, Vec<VarId>) {
        (self.graph, self.taken.unwrap_or_default())
    }

    pub fn known(&mut self, var: VarId) -> Known {
        let v = &self.program.vars[var];
        let mut free = self.free;
        let dims = v.dims.iter().map(|&d| {
            usize::try_from(d).map_or_else(
                |_| {
                    free += 1;
                    Dim::Free(free)
                },
                Dim::Fixed,
            )
        });
        let known = Known { dims: dims.collect(), dtype: v.dtype, stop_gradient: v.stop_gradient };
        self.free = free;
        known
    }

    pub fn define(&mut self, var: VarId) -> Id {
        let known = self.known(var);
        let id = self.graph.add_value(known);
        self.of[var] = Some(id);
        id
    }

    /// The value of a variable.
    pub fn id(&mut self, var: VarId) -> Result<Id> {
        match self.of[var] {
            Some(id) => Ok(id),
            None => match self.symbols.get(&var).cloned() {
                Some(sizes) => self.extents(var, sizes),
                None if self.taken.is_some() => Ok(self.take(var)),
                None => Err(damaged(format!("`{}` is read before it is given", self.program.vars[var].name))),
            },
        }
    }

    pub fn ids(&mut self, vars: &[VarId]) -> Result<Vec<Id>> {
        vars.iter().map(|&v| self.id(v)).collect()
    }

    /// Extents as a tensor, for those who compute with them.
    fn extents(&mut self, var: VarId, sizes: Vec<Size>) -> Result<Id> {
        let dtype = self.program.vars[var].dtype;
        let one = Known { dims: vec![Dim::Fixed(1)], dtype, stop_gradient: true };
        let mut parts = Vec::new();
        for size in sizes {
            let shape = Arg::Plain(vec![1i64].into());
            let args =
                vec![("shape", shape), ("fill_value", Arg::Size(size)), ("dtype", Arg::Plain(Plain::DType(dtype)))];
            parts.push(self.call_new("full", args, one.clone())?);
        }
        let known = self.known(var);
        let id = match (known.dims.len(), parts.as_slice()) {
            (0, [part]) => self.call_new("squeeze", vec![("x", Arg::Tensor(*part))], known)?,
            _ => self.call_new("concat", vec![("x", Arg::Tensors(parts))], known)?,
        };
        self.of[var] = Some(id);
        Ok(id)
    }

    fn push(&mut self, name: &str, named: Vec<(&str, Arg)>, outputs: Vec<Id>) -> Result<()> {
        let op = op::find(name).ok_or_else(|| damaged(format!("there is no op `{name}`")))?;
        let mut args = Vec::with_capacity(op.params.len());
        for p in op.params {
            let given = named.iter().find(|(n, _)| op.position(n).is_some_and(|i| op.params[i].name == p.name));
            args.push(match (given, p.default) {
                (Some((_, arg)), _) => arg.clone(),
                (None, Some(default)) => Arg::Plain(default()),
                (None, None) => return Err(damaged(format!("{name}: argument `{}` is missing", p.name))),
            });
        }
        self.graph.calls.push(Call { op, args, outputs, no_grad: false, source: None });
        Ok(())
    }

    /// Adds a call that gives these variables.
    pub fn call(&mut self, name: &str, named: Vec<(&str, Arg)>, results: &[VarId]) -> Result<()> {
        let outputs = results.iter().map(|&v| self.define(v)).collect();
        self.push(name, named, outputs)
    }

    /// Adds a call whose result no variable has.
    pub fn call_new(&mut self, name: &str, named: Vec<(&str, Arg)>, known: Known) -> Result<Id> {
        let id = self.graph.add_value(known);
        self.push(name, named, vec![id])?;
        Ok(id)
    }

    /// The shape of a tensor: as numbers that follow it.
    pub fn shape(&mut self, from: VarId, to: VarId) -> Result<()> {
        let id = self.id(from)?;
        let known = self.graph.values[id].clone();
        let rank = known.dims.len();
        let sizes = (0..rank).map(|axis| match known.dims[axis] {
            Dim::Fixed(n) => Size::fixed(n as i64),
            Dim::Free(_) => Size::extent(id, axis),
        });
        self.symbols.insert(to, sizes.collect());
        Ok(())
    }

    /// The extents that a variable holds, if it holds such.
    pub fn extents_of(&self, var: VarId) -> Option<&[Size]> {
        self.symbols.get(&var).map(Vec::as_slice)
    }

    /// A variable holds a number that follows extents.
    pub fn follow(&mut self, var: VarId, size: Size) {
        self.symbols.insert(var, vec![size]);
    }

    /// The number of elements of a tensor.
    pub fn numel(&mut self, from: VarId, to: VarId) -> Result<()> {
        let id = self.id(from)?;
        let mut size = Size { extents: vec![], times: 1, plus: 0, over: 1 };
        for (axis, d) in self.graph.values[id].dims.iter().enumerate() {
            match d {
                Dim::Fixed(n) => size.times = size.times.saturating_mul(*n as i64),
                Dim::Free(_) => size.extents.push((id, axis)),
            }
        }
        let size = if size.extents.is_empty() { Size::fixed(size.times) } else { size };
        self.symbols.insert(to, vec![size]);
        Ok(())
    }

    /// A shape with one extent of a tensor in it.
    pub fn batch_like(&mut self, like: VarId, shape: Vec<i64>, from: i64, to: i64) -> Result<Arg> {
        let id = self.id(like)?;
        let mut sizes = shape.into_iter().map(Size::fixed).collect::<Vec<_>>();
        let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
        match sizes.get_mut(to) {
            Some(size) => *size = Size::extent(id, from),
            None => return Err(damaged("a shape without the axis that is to be copied".into())),
        }
        Ok(Arg::Sizes(sizes))
    }

    /// A number that is written in the program may be one of a shape's.
    pub fn note_number(&mut self, var: VarId, op: &Op, value: f64) -> Result<()> {
        let one = op.ints("shape").is_ok_and(|s| s.iter().all(|n| *n == 1));
        if one && !self.program.vars[var].dtype.is_inexact() && value.fract() == 0.0 {
            self.symbols.insert(var, vec![Size::fixed(value as i64)]);
        }
        Ok(())
    }

    /// Whole numbers of an argument, of which some may follow extents.
    pub fn sizes(&mut self, op: &Op, name: &str) -> Result<Arg> {
        let unknown = || {
            let message = format!("{}: `{name}` is computed from values, which is not read yet", op.schema.name);
            Error::new(Kind::Unimplemented, message).in_op("load")
        };
        let sizes = match op.get(name) {
            Some(Value::Ints(v)) => return Ok(Arg::Plain(v.clone().into())),
            Some(Value::Var(v)) => self.symbols.get(v).cloned().ok_or_else(unknown)?,
            Some(Value::Vars(vars)) => {
                let each = vars.iter().map(|v| self.symbols.get(v).filter(|s| s.len() == 1).map(|s| s[0].clone()));
                each.collect::<Option<Vec<_>>>().ok_or_else(unknown)?
            }
            Some(Value::Int(i)) => return Ok(Arg::Plain(vec![*i].into())),
            _ => return Ok(Arg::Plain(Vec::<i64>::new().into())),
        };
        Ok(match sizes.iter().map(Size::as_fixed).collect::<Option<Vec<_>>>() {
            Some(fixed) => Arg::Plain(fixed.into()),
            None => Arg::Sizes(sizes),
        })
    }

    /// A tensor of one number that an op of ours takes as a number.
    pub fn scalar(&mut self, var: VarId) -> Result<Arg> {
        if let Some([size]) = self.symbols.get(&var).map(Vec::as_slice) {
            return Ok(size.as_fixed().map_or_else(|| Arg::Size(size.clone()), |n| Arg::Plain(Plain::Int(n))));
        }
        let made = self.program.all_ops().find(|op| op.results.iter().any(|(_, v)| v.contains(&var)));
        match made {
            Some(op) if op.schema.name == "full" => Ok(Arg::Plain(Plain::Float(op.float("value")?))),
            _ => Err(damaged(format!("`{}` is a number that is computed from values", self.program.vars[var].name))),
        }
    }

    /// Computes with extents without computing tensors; false if the op's arguments are others.
    pub fn symbolic(&mut self, op: &Op) -> Result<bool> {
        let of = |name: &str| op.var_or_none(name).and_then(|v| self.symbols.get(&v)).cloned();
        let plain = |s: &Size| s.extents.is_empty();
        let found: Option<Vec<Size>> = match op.schema.name {
            "cast" if !self.program.vars[op.first_result()?].dtype.is_inexact() => of("x"),
            "squeeze" | "unsqueeze" => of("x"),
            "slice" => of("input").and_then(|all| {
                let (starts, ends) = (op.ints("starts").ok()?, op.ints("ends").ok()?);
                let ([start], [end]) = (starts.as_slice(), ends.as_slice()) else { return None };
                let n = all.len() as i64;
                let at = |i: i64| if i < 0 { (i + n).max(0) } else { i.min(n) } as usize;
                all.get(at(*start)..at(*end)).map(<[Size]>::to_vec)
            }),
            "concat" | "stack" => {
                let all = op.vars("x")?.iter().map(|v| self.symbols.get(v).cloned()).collect::<Option<Vec<_>>>();
                all.map(|all| all.concat())
            }
            "add" | "subtract" | "multiply" | "floor_divide" => match (of("x"), of("y")) {
                (Some(x), Some(y)) if x.len() == y.len() || y.len() == 1 => {
                    let pairs = x.iter().enumerate().map(|(i, x)| (x, &y[if y.len() == 1 { 0 } else { i }]));
                    pairs.map(|(x, y)| combined(op.schema.name, x, y)).collect()
                }
                _ => None,
            },
            "scale" => of("x").and_then(|x| {
                let (scale, bias) = (op.float("scale").ok()?, op.float_or("bias", 0.0));
                let after = op.bool("bias_after_scale", true);
                let whole = scale.fract() == 0.0 && bias.fract() == 0.0 && after;
                let one = |s: &Size| {
                    let times = combined("multiply", s, &Size::fixed(scale as i64))?;
                    combined("add", &times, &Size::fixed(bias as i64))
                };
                x.iter().map(one).collect::<Option<Vec<_>>>().filter(|_| whole)
            }),
            _ => None,
        };
        // Plain numbers are tensors too; only what follows an extent has to stay a number.
        let Some(sizes) = found.filter(|s| !s.iter().all(plain) || op.schema.name != "cast") else { return Ok(false) };
        self.symbols.insert(op.first_result()?, sizes);
        Ok(true)
    }
}

/// Two numbers as one.
fn combined(op: &str, x: &Size, y: &Size) -> Option<Size> {
    let (n, m) = (x.as_fixed(), y.as_fixed());
    let mut out = x.clone();
    match (op, n, m) {
        ("add", Some(a), Some(b)) => return Some(Size::fixed(a.checked_add(b)?)),
        ("subtract", Some(a), Some(b)) => return Some(Size::fixed(a.checked_sub(b)?)),
        ("multiply", Some(a), Some(b)) => return Some(Size::fixed(a.checked_mul(b)?)),
        ("floor_divide", Some(a), Some(b)) => return Some(Size::fixed(a.checked_div_euclid(b)?)),
        ("add" | "multiply", Some(_), None) => return combined(op, y, x),
        ("add", None, Some(b)) => out.plus = out.plus.checked_add(b.checked_mul(out.over)?)?,
        ("subtract", None, Some(b)) => out.plus = out.plus.checked_sub(b.checked_mul(out.over)?)?,
        ("multiply", None, Some(b)) if out.over == 1 => {
            (out.times, out.plus) = (out.times.checked_mul(b)?, out.plus.checked_mul(b)?);
        }
        ("floor_divide", None, Some(b)) if b > 0 => out.over = out.over.checked_mul(b)?,
        ("multiply", None, None) if (out.over, out.plus, y.over, y.plus) == (1, 0, 1, 0) => {
            out.times = out.times.checked_mul(y.times)?;
            out.extents.extend(&y.extents);
        }
        _ => return None,
    }
    Some(out)
}
