//! Branches and loops as Paddle 2 has them: blocks that write variables of the block around them.

use super::write::{Encoder, plain};
use crate::paddle::program::{Op, Region, VarId};
use sampan_core::{DType, Result};
use sampan_io::pdmodel::{self, Attr, Block, VarKind, dtype_number};
use std::collections::HashSet;

/// Paddle's number of variables that hold scopes.
const STEP_SCOPES: i64 = 11;

fn op(kind: &str, inputs: Vec<(&str, Vec<String>)>, outputs: Vec<(&str, Vec<String>)>) -> pdmodel::Op {
    let named = |list: Vec<(&str, Vec<String>)>| list.into_iter().map(|(n, v)| (n.to_string(), v)).collect();
    pdmodel::Op { kind: kind.into(), inputs: named(inputs), outputs: named(outputs), attrs: vec![] }
}

fn assign(from: &str, to: &str) -> pdmodel::Op {
    op("assign", vec![("X", vec![from.into()])], vec![("Out", vec![to.into()])])
}

impl Encoder<'_> {
    /// A new variable of a block, like another.
    fn like(&mut self, v: VarId, name: String, dtype: Option<DType>, block: usize) -> String {
        let mut var = self.var(v);
        var.name.clone_from(&name);
        (var.persistable, var.is_parameter) = (false, false);
        if let (Some(dtype), VarKind::Tensor { dtype: of, .. }) = (dtype, &mut var.kind) {
            *of = Some(dtype);
        }
        self.blocks[block].vars.push(var);
        name
    }

    fn scope(&mut self, name: String, block: usize) -> String {
        let var = pdmodel::Var { persistable: false, ..plain(&name, VarKind::Other(STEP_SCOPES)) };
        self.blocks[block].vars.push(var);
        name
    }

    /// Writes a region as a block of its own: its number, and the variables that it takes from around it.
    fn region(&mut self, region: &Region, parent: usize) -> Result<(usize, Vec<String>)> {
        let at = self.blocks.len();
        self.blocks.push(Block { parent: parent as i64, ..Block::default() });
        let mut own = HashSet::new();
        for v in region.ops.iter().flat_map(|op| &op.results).flat_map(|(_, v)| v) {
            own.insert(self.name(*v));
            let declared = self.var(*v);
            self.blocks[at].vars.push(declared);
        }
        region.ops.iter().try_for_each(|op| self.op(op, at))?;
        let read = self.blocks[at].ops.iter().flat_map(|op| &op.inputs).flat_map(|(_, names)| names);
        let declared = |name: &String| self.blocks[at].vars.iter().any(|v| v.name == *name);
        let mut taken: Vec<String> = Vec::new();
        for name in read.filter(|n| !own.contains(*n) && !declared(n)) {
            if !taken.contains(name) {
                taken.push(name.clone());
            }
        }
        Ok((at, taken))
    }

    pub(super) fn flow(&mut self, found: &Op, block: usize) -> Result<()> {
        if found.schema.name == "if" { self.branches(found, block) } else { self.repeated(found, block) }
    }

    /// Two blocks, of which one runs, and a choice of what they wrote.
    fn branches(&mut self, found: &Op, block: usize) -> Result<()> {
        let (pred, results) = (found.var("cond")?, found.results("out").to_vec());
        let base = format!("{}.cond_{}", self.name(pred), self.blocks.len());
        let not = self.like(pred, format!("{base}.not"), None, block);
        let mask = self.like(pred, format!("{base}.mask"), Some(DType::Int32), block);
        let turned = op("logical_not", vec![("X", vec![self.name(pred)])], vec![("Out", vec![not.clone()])]);
        self.blocks[block].ops.push(turned);
        let mut given = Vec::new();
        for (name, holds) in [("then", self.name(pred)), ("otherwise", not)] {
            let region = self.program.region(found, name)?;
            let (at, taken) = self.region(region, block)?;
            let mut outs = Vec::new();
            for (i, &v) in results.iter().enumerate() {
                let out = self.like(v, format!("{base}.{name}_{i}"), None, block);
                let from = self.name(region.yields[i]);
                self.blocks[at].ops.push(assign(&from, &out));
                outs.push(out);
            }
            let scope = self.scope(format!("{base}.{name}_scope"), block);
            let mut written = op(
                "conditional_block",
                vec![("Cond", vec![holds]), ("Input", taken)],
                vec![("Out", outs.clone()), ("Scope", vec![scope])],
            );
            written.attrs.push(("sub_block".into(), Attr::Block(at as i64)));
            written.attrs.push(("is_scalar_condition".into(), Attr::Bool(true)));
            self.blocks[block].ops.push(written);
            given.push(outs);
        }
        let mut cast = op("cast", vec![("X", vec![self.name(pred)])], vec![("Out", vec![mask.clone()])]);
        cast.attrs.push(("in_dtype".into(), Attr::Int(dtype_number(DType::Bool))));
        cast.attrs.push(("out_dtype".into(), Attr::Int(dtype_number(DType::Int32))));
        self.blocks[block].ops.push(cast);
        for (i, &v) in results.iter().enumerate() {
            let both = vec![given[1][i].clone(), given[0][i].clone()];
            let to = vec![self.name(v)];
            self.blocks[block].ops.push(op(
                "select_input",
                vec![("X", both), ("Mask", vec![mask.clone()])],
                vec![("Out", to)],
            ));
        }
        Ok(())
    }

    /// A block that writes the state and whether it goes on.
    fn repeated(&mut self, found: &Op, block: usize) -> Result<()> {
        let (cond, state) = (found.var("cond")?, found.vars("inputs")?);
        let region = self.program.region(found, "body")?;
        let goes_on = self.like(cond, format!("{}.while_{}", self.name(cond), self.blocks.len()), None, block);
        let write = assign(&self.name(cond), &goes_on);
        self.blocks[block].ops.push(write);
        for (&from, &arg) in state.iter().zip(&region.args) {
            let write = assign(&self.name(from), &self.name(arg));
            self.blocks[block].ops.push(write);
        }
        let (at, mut taken) = self.region(region, block)?;
        let inside = self.names(&region.args);
        let targets = [vec![goes_on.clone()], inside.clone()].concat();
        for (&v, to) in region.yields.iter().zip(&targets) {
            let write = assign(&self.name(v), to);
            self.blocks[at].ops.push(write);
        }
        taken.retain(|n| !inside.contains(n));
        taken.extend(inside.iter().cloned());
        let scope = self.scope(format!("{goes_on}.scope"), block);
        let outs = [inside.clone(), vec![goes_on.clone()]].concat();
        let mut written = op(
            "while",
            vec![("X", taken), ("Condition", vec![goes_on])],
            vec![("Out", outs), ("StepScopes", vec![scope])],
        );
        written.attrs.push(("sub_block".into(), Attr::Block(at as i64)));
        written.attrs.push(("is_test".into(), Attr::Bool(true)));
        self.blocks[block].ops.push(written);
        for (from, &v) in inside.iter().zip(found.results("out")) {
            let write = assign(from, &self.name(v));
            self.blocks[block].ops.push(write);
        }
        Ok(())
    }
}
