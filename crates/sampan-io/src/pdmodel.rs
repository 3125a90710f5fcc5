//! `.pdmodel`: a program of Paddle 2, a protocol buffer of blocks, variables and ops. What the ops mean is not known here.

use crate::atomic;
use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};
use crate::pdiparams::DTYPES;
use crate::proto::{self, Field, Message};
use crate::read_file;
use sampan_core::{DType, Result};
use std::path::Path;

const FORMAT: &str = "Paddle program";
/// What a variable holds, by Paddle's numbers.
const DENSE_TENSOR: i64 = 7;
const TENSOR_ARRAY: i64 = 13;
const FEED: i64 = 9;
const FETCH: i64 = 10;

/// A program: blocks of ops, the first of which is run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// Ops in order, and the variables they name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The number of the block it is part of, or -1.
    pub parent: i64,
    /// The variables.
    pub vars: Vec<Var>,
    /// The ops.
    pub ops: Vec<Op>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: VarKind,
    /// Does it stay between runs?
    pub persistable: bool,
    /// Is it left out of gradients?
    pub stop_gradient: bool,
    /// Is it trained?
    pub is_parameter: bool,
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq)]
pub enum VarKind {
    /// A tensor; -1 in the shape stands for any extent.
    Tensor {
        /// The type of its elements; none where Paddle has one that sampan lacks.
        dtype: Option<DType>,
        /// The extents.
        dims: Vec<i64>,
    },
    /// An array of such tensors.
    Array {
        /// The type of their elements.
        dtype: Option<DType>,
        /// The extents of each.
        dims: Vec<i64>,
    },
    /// What a program is fed with.
    Feed,
    /// What is fetched from it.
    Fetch,
    /// Something else, by Paddle's number.
    Other(i64),
}

/// An op: its type, the variables in its slots, and its attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Op {
    /// Its type.
    pub kind: String,
    /// The variables it reads, by slot.
    pub inputs: Vec<(String, Vec<String>)>,
    /// The variables it gives, by slot.
    pub outputs: Vec<(String, Vec<String>)>,
    /// Its attributes.
    pub attrs: Vec<(String, Attr)>,
}

/// An attribute of an op.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Attr {
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
    Bool(bool),
    Bools(Vec<bool>),
    Block(i64),
    Long(i64),
    Longs(Vec<i64>),
    Float64s(Vec<f64>),
    Float64(f64),
    /// Of a kind that is not read.
    Unknown(i64),
}

impl Op {
    /// The variables of an input slot.
    pub fn input(&self, slot: &str) -> &[String] {
        find(&self.inputs, slot).map_or(&[], Vec::as_slice)
    }

    /// The variables of an output slot.
    pub fn output(&self, slot: &str) -> &[String] {
        find(&self.outputs, slot).map_or(&[], Vec::as_slice)
    }

    /// An attribute by its name.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        find(&self.attrs, name)
    }
}

fn find<'a, T>(list: &'a [(String, T)], name: &str) -> Option<&'a T> {
    list.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}

/// Paddle's number of a dtype.
pub fn dtype_number(dtype: DType) -> i64 {
    DTYPES.iter().find(|(_, d)| *d == dtype).expect("every dtype is listed").0 as i64
}

/// The dtype of Paddle's number.
pub fn dtype_of(number: i64) -> Option<DType> {
    DTYPES.iter().find(|(n, _)| *n as i64 == number).map(|&(_, d)| d)
}

/// Reads a program.
pub fn load(path: impl AsRef<Path>) -> Result<Program> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
    decode(bytes).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes a program.
pub fn save(path: impl AsRef<Path>, program: &Program) -> Result<()> {
    atomic::write(path.as_ref(), &to_bytes(program))
}

fn text(bytes: &[u8]) -> Parse<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Fault::damaged("a name that is no UTF-8"))
}

fn decode(bytes: &[u8]) -> Parse<Program> {
    let mut program = Program::default();
    for field in proto::fields(bytes) {
        if let (1, Field::Bytes(b)) = field? {
            program.blocks.push(block(b)?);
        }
    }
    if program.blocks.is_empty() {
        return Err(Fault::damaged("there is no block in it"));
    }
    Ok(program)
}

fn block(bytes: &[u8]) -> Parse<Block> {
    let mut block = Block { parent: -1, ..Block::default() };
    for field in proto::fields(bytes) {
        match field? {
            (2, Field::Varint(v)) => block.parent = i64::from(v as i32),
            (3, Field::Bytes(b)) => block.vars.push(var(b)?),
            (4, Field::Bytes(b)) => block.ops.push(op(b)?),
            _ => {}
        }
    }
    Ok(block)
}

fn var(bytes: &[u8]) -> Parse<Var> {
    let mut var = Var {
        name: String::new(),
        kind: VarKind::Other(-1),
        persistable: false,
        stop_gradient: false,
        is_parameter: false,
    };
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => var.name = text(b)?,
            (2, Field::Bytes(b)) => var.kind = var_kind(b)?,
            (3, Field::Varint(v)) => var.persistable = v != 0,
            (5, Field::Varint(v)) => var.is_parameter = v != 0,
            (6, Field::Varint(v)) => var.stop_gradient = v != 0,
            _ => {}
        }
    }
    Ok(var)
}

fn var_kind(bytes: &[u8]) -> Parse<VarKind> {
    let (mut number, mut tensor) = (-1, None);
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Varint(v)) => number = v as i64,
            // A message of levels around the one that counts.
            (3 | 4, Field::Bytes(b)) => {
                for field in proto::fields(b) {
                    if let (1, Field::Bytes(b)) = field? {
                        tensor = Some(b);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(match (number, tensor) {
        (DENSE_TENSOR | TENSOR_ARRAY, Some(b)) => {
            let (mut dtype, mut dims) = (None, Vec::new());
            for field in proto::fields(b) {
                match field? {
                    (1, Field::Varint(v)) => dtype = dtype_of(v as i64),
                    (2, field) => integers(&field, &mut dims)?,
                    _ => {}
                }
            }
            if number == DENSE_TENSOR { VarKind::Tensor { dtype, dims } } else { VarKind::Array { dtype, dims } }
        }
        (FEED, _) => VarKind::Feed,
        (FETCH, _) => VarKind::Fetch,
        (other, _) => VarKind::Other(other),
    })
}

/// Numbers of a field that is one or many.
fn integers(field: &Field<'_>, into: &mut Vec<i64>) -> Parse<()> {
    match field {
        Field::Varint(v) => into.push(*v as i64),
        Field::Bytes(packed) => {
            let mut packed = Cursor::new(packed);
            while packed.remaining() > 0 {
                into.push(proto::varint(&mut packed)? as i64);
            }
        }
        _ => {}
    }
    Ok(())
}

fn floats(field: &Field<'_>, into: &mut Vec<f64>) {
    match field {
        Field::Fixed32(v) => into.push(f64::from(f32::from_bits(*v))),
        Field::Fixed64(v) => into.push(f64::from_bits(*v)),
        _ => {}
    }
}

fn slot(bytes: &[u8]) -> Parse<(String, Vec<String>)> {
    let (mut name, mut vars) = (String::new(), Vec::new());
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => name = text(b)?,
            (2, Field::Bytes(b)) => vars.push(text(b)?),
            _ => {}
        }
    }
    Ok((name, vars))
}

fn op(bytes: &[u8]) -> Parse<Op> {
    let mut op = Op::default();
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => op.inputs.push(slot(b)?),
            (2, Field::Bytes(b)) => op.outputs.push(slot(b)?),
            (3, Field::Bytes(b)) => op.kind = text(b)?,
            (4, Field::Bytes(b)) => op.attrs.push(attr(b)?),
            _ => {}
        }
    }
    Ok(op)
}

fn attr(bytes: &[u8]) -> Parse<(String, Attr)> {
    let (mut name, mut kind, mut whole, mut real) = (String::new(), -1, 0, 0.0);
    let (mut word, mut words, mut wholes, mut reals) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    for field in proto::fields(bytes) {
        let (number, field) = field?;
        match (number, &field) {
            (1, Field::Bytes(b)) => name = text(b)?,
            (2, Field::Varint(v)) => kind = *v as i64,
            (3 | 10 | 12 | 13, Field::Varint(v)) => whole = *v as i64,
            (4, Field::Fixed32(v)) => real = f64::from(f32::from_bits(*v)),
            (19, Field::Fixed64(v)) => real = f64::from_bits(*v),
            // Bytes that need not be text: an attribute may hold anything.
            (5, Field::Bytes(b)) => word = String::from_utf8_lossy(b).into_owned(),
            (6 | 11 | 15, _) => integers(&field, &mut wholes)?,
            (7 | 16, _) => floats(&field, &mut reals),
            (8, Field::Bytes(b)) => words.push(String::from_utf8_lossy(b).into_owned()),
            _ => {}
        }
    }
    let value = match kind {
        // Paddle writes 32 bits, of which negative ones may come as 64.
        0 => Attr::Int(i64::from(whole as i32)),
        1 => Attr::Float(real),
        2 => Attr::Text(word),
        3 => Attr::Ints(wholes.into_iter().map(|v| i64::from(v as i32)).collect()),
        4 => Attr::Floats(reals),
        5 => Attr::Texts(words),
        6 => Attr::Bool(whole != 0),
        7 => Attr::Bools(wholes.into_iter().map(|v| v != 0).collect()),
        8 => Attr::Block(whole),
        9 => Attr::Long(whole),
        11 => Attr::Longs(wholes),
        12 => Attr::Float64s(reals),
        15 => Attr::Float64(real),
        other => Attr::Unknown(other),
    };
    Ok((name, value))
}

/// A program as bytes.
pub fn to_bytes(program: &Program) -> Vec<u8> {
    let mut out = Message::new();
    for (i, block) in program.blocks.iter().enumerate() {
        let mut b = Message::new().int(1, i as i64).int(2, block.parent);
        b = block.vars.iter().fold(b, |b, v| b.message(3, &encode_var(v)));
        b = block.ops.iter().fold(b, |b, o| b.message(4, &encode_op(o)));
        out = out.message(1, &b);
    }
    out.message(4, &Message::new().int(1, 0)).0
}

fn encode_var(var: &Var) -> Message {
    let kind = match &var.kind {
        VarKind::Tensor { dtype, dims } | VarKind::Array { dtype, dims } => {
            let tensor = Message::new().int(1, dtype.map_or(0, dtype_number));
            let tensor = dims.iter().fold(tensor, |t, &d| t.int(2, d));
            let one = matches!(var.kind, VarKind::Tensor { .. });
            let (number, field) = if one { (DENSE_TENSOR, 3) } else { (TENSOR_ARRAY, 4) };
            Message::new().int(1, number).message(field, &Message::new().message(1, &tensor).int(2, 0))
        }
        VarKind::Feed => Message::new().int(1, FEED),
        VarKind::Fetch => Message::new().int(1, FETCH),
        VarKind::Other(number) => Message::new().int(1, *number),
    };
    let flag = |m: Message, field, on: bool| if on { m.int(field, 1) } else { m };
    let m = Message::new().text(1, &var.name).message(2, &kind);
    let m = flag(m.int(3, i64::from(var.persistable)), 5, var.is_parameter);
    flag(m, 6, var.stop_gradient)
}

fn encode_op(op: &Op) -> Message {
    let slot =
        |(name, vars): &(String, Vec<String>)| vars.iter().fold(Message::new().text(1, name), |m, v| m.text(2, v));
    let m = op.inputs.iter().fold(Message::new(), |m, s| m.message(1, &slot(s)));
    let m = op.outputs.iter().fold(m, |m, s| m.message(2, &slot(s))).text(3, &op.kind);
    op.attrs.iter().fold(m, |m, (name, attr)| m.message(4, &encode_attr(name, attr)))
}

fn encode_attr(name: &str, attr: &Attr) -> Message {
    let of = |kind: i64| Message::new().text(1, name).int(2, kind);
    match attr {
        Attr::Int(v) => of(0).int(3, *v),
        Attr::Float(v) => of(1).float(4, *v as f32),
        Attr::Text(v) => of(2).text(5, v),
        Attr::Ints(v) => v.iter().fold(of(3), |m, &v| m.int(6, v)),
        Attr::Floats(v) => v.iter().fold(of(4), |m, &v| m.float(7, v as f32)),
        Attr::Texts(v) => v.iter().fold(of(5), |m, v| m.text(8, v)),
        Attr::Bool(v) => of(6).int(10, i64::from(*v)),
        Attr::Bools(v) => v.iter().fold(of(7), |m, &v| m.int(11, i64::from(v))),
        Attr::Block(v) => of(8).int(12, *v),
        Attr::Long(v) => of(9).int(13, *v),
        Attr::Longs(v) => v.iter().fold(of(11), |m, &v| m.int(15, v)),
        Attr::Float64s(v) => v.iter().fold(of(12), |m, &v| m.double(16, v)),
        Attr::Float64(v) => of(15).double(19, *v),
        Attr::Unknown(kind) => of(*kind),
    }
}
