//! Branches and loops of a `.pdmodel`.
//!
//! Paddle 2 writes a branch as a `conditional_block` that writes variables around it. Where they had no value before,
//! there is one such block for each side, and `select_input` chooses between what they wrote; where they had one, they keep
//! it if the block does not run. So a block waits here until it is known what it is a side of: until somebody chooses, or
//! reads what it may have written.

use super::read::{Place, Reader, not_read};
use crate::paddle::program::{DEEPEST, Op, Region, Value, VarId};
use crate::paddle::schema;
use sampan_core::{DType, Error, Result};
use sampan_io::pdmodel::{self, Attr};
use std::collections::{BTreeSet, HashSet};

/// The branches of a block that wait, and the choices between them.
#[derive(Default)]
pub(super) struct Flow<'f> {
    branches: Vec<Branch<'f>>,
    choices: Vec<Choice>,
}

struct Branch<'f> {
    cond: VarId,
    ops: Vec<Op>,
    /// The names around it that it writes, what they stand for at its end, and whether they had a value before.
    writes: Vec<(&'f str, Place, bool)>,
    used: bool,
}

impl Branch<'_> {
    fn of(&self, name: &str) -> Option<VarId> {
        self.writes.iter().find(|(n, ..)| *n == name).map(|(_, place, _)| place.var)
    }

    /// Does it change what had a value?
    fn changes(&self) -> bool {
        !self.used && self.writes.iter().any(|(.., before)| *before)
    }
}

/// What is given by one branch or another: first if the condition does not hold.
struct Choice {
    cond: VarId,
    sides: [Option<usize>; 2],
    yields: [Vec<VarId>; 2],
    results: Vec<VarId>,
}

/// Everything that ops read, those of regions too.
fn read_by(ops: &[Op], regions: &[Region], found: &mut HashSet<VarId>) {
    for (_, value) in ops.iter().flat_map(|op| &op.args) {
        match value {
            Value::Var(v) => _ = found.insert(*v),
            Value::Vars(all) => found.extend(all),
            Value::Region(at) => {
                found.extend(&regions[*at].yields);
                read_by(&regions[*at].ops, regions, found);
            }
            _ => {}
        }
    }
}

fn sub_block(op: &pdmodel::Op) -> Result<usize> {
    let number = if let Some(Attr::Block(i)) = op.attr("sub_block") { usize::try_from(*i).ok() } else { None };
    number.ok_or_else(|| Error::invalid(format!("`{}` without a block", op.kind)).in_op("load"))
}

fn one<'f>(op: &'f pdmodel::Op, names: &'f [String]) -> Result<&'f str> {
    let first = names.first().map(String::as_str);
    first.ok_or_else(|| Error::invalid(format!("`{}` lacks a variable", op.kind)).in_op("load"))
}

impl<'f> Reader<'f> {
    /// Reads a block: its ops, and the names around it that it writes, with whether they had a value before.
    fn inner(&mut self, number: usize, depth: usize) -> Result<(Vec<Op>, Vec<(&'f str, Place, bool)>)> {
        let wrong = |what: &str| Err(Error::invalid(format!("block {number} {what}")).in_op("load"));
        let Some(block) = self.file.blocks.get(number) else { return wrong("is named and not there") };
        if std::mem::replace(&mut self.blocks[number], true) {
            return wrong("is a part of two ops");
        }
        if depth >= DEEPEST {
            return wrong("lies too deep in others");
        }
        let mark = self.before.len();
        self.declare(block)?;
        let own: HashSet<&str> = self.before[mark..].iter().map(|(name, _)| *name).collect();
        let flow = std::mem::take(&mut self.flow);
        let outer = std::mem::take(&mut self.program.ops);
        let read = self.ops(&block.ops, depth + 1);
        let ops = std::mem::replace(&mut self.program.ops, outer);
        self.flow = flow;
        read?;
        let mut writes: Vec<(&str, Place, bool)> = Vec::new();
        let names: BTreeSet<&str> = self.before[mark..].iter().map(|(n, _)| *n).filter(|n| !own.contains(n)).collect();
        for name in names {
            writes.push((name, self.place(name)?, false));
        }
        for (name, place) in self.before.split_off(mark).into_iter().rev() {
            match place {
                Some(place) => _ = self.scope.insert(name, place),
                None => _ = self.scope.remove(name),
            }
        }
        for (name, _, given) in &mut writes {
            *given = self.place(name)?.given;
        }
        Ok((ops, writes))
    }

    /// Remembers which truth values are others turned around, or cast.
    pub(super) fn note(&mut self, op: &Op) {
        let (Some(from), Some(to)) = (op.var_or_none("x"), op.results.first().and_then(|(_, v)| v.first())) else {
            return;
        };
        match op.schema.name {
            "logical_not" => _ = self.nots.insert(*to, from),
            "cast" if self.program.vars[from].dtype == DType::Bool => _ = self.casts.insert(*to, from),
            _ => {}
        }
    }

    /// Before an op is read: what waits and could matter to it waits no more.
    pub(super) fn settle(&mut self, op: &pdmodel::Op) -> Result<()> {
        let flow = &self.flow;
        let reads = |name: &String| {
            let var = self.scope.get(name.as_str()).map(|p| p.var);
            flow.choices.iter().any(|c| var.is_some_and(|v| c.results.contains(&v)))
                || flow.branches.iter().any(|b| b.changes() && b.writes.iter().any(|(n, _, given)| *given && n == name))
        };
        let matters = match op.kind.as_str() {
            "select_input" => false,
            "conditional_block" | "conditional_block_infer" => {
                let cond = op.input("Cond").first().and_then(|n| self.scope.get(n.as_str())).map(|p| p.var);
                // The other side of a branch does not run if that did.
                let other = |b: &Branch| {
                    let turned = |a: VarId, b: VarId| self.nots.get(&a) == Some(&b);
                    cond.is_some_and(|c| turned(c, b.cond) || turned(b.cond, c))
                };
                !flow.choices.is_empty() || flow.branches.iter().any(|b| b.changes() && !other(b))
            }
            "while" => true,
            _ => op.inputs.iter().chain(&op.outputs).flat_map(|(_, names)| names).any(reads),
        };
        if matters { self.close() } else { Ok(()) }
    }

    /// A block that runs if a condition holds.
    pub(super) fn branch(&mut self, op: &'f pdmodel::Op, depth: usize) -> Result<()> {
        if !matches!(op.attr("is_scalar_condition"), Some(Attr::Bool(true))) {
            return Err(not_read("a `conditional_block` that asks whether tensors are empty".into()));
        }
        let cond = self.var(one(op, op.input("Cond"))?)?;
        let (ops, writes) = self.inner(sub_block(op)?, depth)?;
        self.flow.branches.push(Branch { cond, ops, writes, used: false });
        Ok(())
    }

    /// What one branch or another has given.
    pub(super) fn choice(&mut self, op: &'f pdmodel::Op) -> Result<()> {
        let ([no, yes], mask) = (op.input("X"), self.var(one(op, op.input("Mask"))?)?) else {
            return Err(not_read("`select_input` of more than two".into()));
        };
        let cond = match self.casts.get(&mask) {
            Some(cond) => *cond,
            None => self.truth(mask),
        };
        let mut sides = [None; 2];
        let mut yields = [0; 2];
        for (k, name) in [no, yes].into_iter().enumerate() {
            let place = self.place(name)?;
            // An array that was there before is changed by the branch itself; its name stands for both sides.
            let side = |b: &Branch| if k == 1 { b.cond == cond } else { self.nots.get(&b.cond) == Some(&cond) };
            let gives = |b: &Branch| match place.given {
                false => b.writes.iter().any(|(n, _, given)| n == name && !given),
                true => !b.used && side(b) && b.writes.iter().any(|(n, ..)| n == name),
            };
            let from = self.flow.branches.iter().rposition(gives);
            yields[k] = match from {
                Some(at) if self.flow.branches[at].used => {
                    return Err(not_read(format!("`{name}` is chosen after what its branch wrote was read")));
                }
                Some(at) => {
                    sides[k] = Some(at);
                    self.flow.branches[at].of(name).unwrap_or(place.var)
                }
                None => place.var,
            };
        }
        let known = self.flow.choices.iter().position(|c| c.cond == cond);
        let at = known.unwrap_or_else(|| {
            let (yields, results) = Default::default();
            self.flow.choices.push(Choice { cond, sides: [None; 2], yields, results });
            self.flow.choices.len() - 1
        });
        let result = self.written(one(op, op.output("Out"))?)?;
        let choice = &mut self.flow.choices[at];
        for k in 0..2 {
            match (choice.sides[k], sides[k]) {
                (Some(a), Some(b)) if a != b => {
                    return Err(not_read("branches of one condition that are not two sides of one".into()));
                }
                (None, Some(_)) => choice.sides[k] = sides[k],
                _ => {}
            }
            choice.yields[k].push(yields[k]);
        }
        choice.results.push(result);
        Ok(())
    }

    /// A number as a truth value.
    fn truth(&mut self, var: VarId) -> VarId {
        let mut made = self.program.vars[var].clone();
        (made.dtype, made.weight, made.trainable) = (DType::Bool, false, false);
        self.program.vars.push(made);
        let cond = self.program.vars.len() - 1;
        let schema = schema::find("cast").expect("it is in the table");
        let args = vec![("x", Value::Var(var)), ("dtype", Value::DType(Some(DType::Bool)))];
        self.program.ops.push(Op { schema, args, results: vec![("out", vec![cond])] });
        cond
    }

    fn push_region(&mut self, ops: Vec<Op>, yields: Vec<VarId>) -> Value {
        self.program.regions.push(Region { args: vec![], ops, yields });
        Value::Region(self.program.regions.len() - 1)
    }

    /// Writes down what waits: the choices, and branches that change what was there before.
    pub(super) fn close(&mut self) -> Result<()> {
        let mut choices = std::mem::take(&mut self.flow.choices);
        for (at, branch) in self.flow.branches.iter().enumerate() {
            let chosen = choices.iter().any(|c| c.sides.contains(&Some(at)));
            if branch.changes() && !chosen {
                let (cond, sides, yields, results) = (branch.cond, [None, Some(at)], Default::default(), vec![]);
                choices.push(Choice { cond, sides, yields, results });
            }
        }
        for Choice { cond, sides, mut yields, mut results } in choices {
            let changed: BTreeSet<&str> = (sides.iter().flatten())
                .flat_map(|&at| self.flow.branches[at].writes.iter().filter(|(.., given)| *given).map(|(n, ..)| *n))
                .collect();
            for name in changed {
                let before = self.var(name)?;
                for k in 0..2 {
                    let by_side = sides[k].and_then(|at| self.flow.branches[at].of(name));
                    yields[k].push(by_side.unwrap_or(before));
                }
                results.push(self.written(name)?);
            }
            let mut regions = Vec::new();
            for (side, yields) in sides.into_iter().zip(yields) {
                let ops = match side.map(|at| &mut self.flow.branches[at]) {
                    Some(branch) if branch.used => return Err(not_read("a branch that is chosen twice".into())),
                    Some(branch) => {
                        branch.used = true;
                        std::mem::take(&mut branch.ops)
                    }
                    None => vec![],
                };
                regions.push(self.push_region(ops, yields));
            }
            let (then, otherwise) = (regions.pop().unwrap_or(Value::Int(0)), regions.pop().unwrap_or(Value::Int(0)));
            let args = vec![("cond", Value::Var(cond)), ("then", then), ("otherwise", otherwise)];
            let schema = schema::find("if").expect("it is in the table");
            self.program.ops.push(Op { schema, args, results: vec![("out", results)] });
        }
        Ok(())
    }

    /// A block that runs again and again.
    pub(super) fn repeated(&mut self, op: &'f pdmodel::Op, depth: usize) -> Result<()> {
        let (cond, number) = (one(op, op.input("Condition"))?, sub_block(op)?);
        let first = self.var(cond)?;
        let mut names: Vec<&'f str> = Vec::new();
        for name in op.output("Out").iter().map(String::as_str).filter(|name| *name != cond) {
            // What has no value before is of no step but its own.
            if self.scope.get(name).is_some_and(|p| p.given) && !names.contains(&name) {
                names.push(name);
            }
        }
        let mut inputs = names.iter().map(|name| self.var(name)).collect::<Result<Vec<_>>>()?;
        let mark = self.before.len();
        let mut args = names.iter().map(|name| self.written(name)).collect::<Result<Vec<_>>>()?;
        let (ops, writes) = self.inner(number, depth)?;
        for (name, place) in self.before.split_off(mark).into_iter().rev() {
            self.scope.extend(place.map(|place| (name, place)));
        }
        let end = |name: &str, else_: VarId| writes.iter().find(|(n, ..)| *n == name).map_or(else_, |(_, p, _)| p.var);
        if let Some((name, ..)) = writes.iter().find(|(n, _, given)| *given && *n != cond && !names.contains(n)) {
            return Err(not_read(format!("a loop writes `{name}`, and does not say so")));
        }
        let mut yields: Vec<VarId> = names.iter().zip(&args).map(|(name, &arg)| end(name, arg)).collect();
        // What a step neither reads nor leaves to others is no part of the state; Paddle has such names, and their kinds change.
        let mut read = HashSet::from([end(cond, first)]);
        read_by(&ops, &self.program.regions, &mut read);
        let kept: Vec<bool> =
            (0..names.len()).map(|i| read.contains(&args[i]) || self.read_beside(names[i], number)).collect();
        for list in [&mut inputs, &mut args, &mut yields] {
            let mut kept = kept.iter();
            list.retain(|_| *kept.next().unwrap_or(&true));
        }
        let yields = [vec![end(cond, first)], yields].concat();
        self.program.regions.push(Region { args, ops, yields });
        let body = Value::Region(self.program.regions.len() - 1);
        let mut kept = kept.iter();
        names.retain(|_| *kept.next().unwrap_or(&true));
        let results = names.iter().map(|name| self.written(name)).collect::<Result<Vec<_>>>()?;
        let args = vec![("cond", Value::Var(first)), ("inputs", Value::Vars(inputs)), ("body", body)];
        let schema = schema::find("while").expect("it is in the table");
        self.program.ops.push(Op { schema, args, results: vec![("out", results)] });
        Ok(())
    }

    /// Does an op outside of a block read a name?
    fn read_beside(&self, name: &str, block: usize) -> bool {
        self.readers.get(name).is_some_and(|reader| *reader != Some(block))
    }
}
