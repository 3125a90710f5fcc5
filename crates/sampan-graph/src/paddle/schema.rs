//! The shapes of Paddle's ops, in both of its formats: `schema.txt`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One of Paddle's ops.
pub(crate) struct Schema {
    /// Its name in PIR.
    pub name: &'static str,
    /// Its type in a `.pdmodel`.
    pub classic: &'static str,
    pub args: Vec<Slot>,
    pub results: Vec<Slot>,
}

/// An argument or a result.
pub(crate) struct Slot {
    /// The name in PIR; empty where PIR lacks it.
    pub name: &'static str,
    /// The slot or attribute in a `.pdmodel`; empty where that lacks it.
    pub classic: &'static str,
    pub kind: Kind,
    /// Of a list of numbers: the slot of a `.pdmodel` that takes tensors instead.
    pub tensors: Option<&'static str>,
}

/// What an argument holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tensor,
    Tensors,
    Bool,
    Int32,
    Int64,
    Float32,
    Text,
    DType,
    Int32s,
    /// 64 bits in PIR; in a `.pdmodel` 64 if `long`.
    Int64s {
        long: bool,
    },
    Float32s,
    /// A tensor of integers in PIR; in a `.pdmodel` an attribute of 64 bits if `long`.
    Shape {
        long: bool,
    },
    /// A tensor of one number in PIR.
    /// What a branch or a loop computes.
    Region,
    FloatTensor,
    Int32Tensor,
    Int64Tensor,
}

fn kind(word: &str) -> Kind {
    match word {
        "b" => Kind::Bool,
        "i32" => Kind::Int32,
        "i64" => Kind::Int64,
        "f32" => Kind::Float32,
        "str" => Kind::Text,
        "dtype" => Kind::DType,
        "i32s" => Kind::Int32s,
        "i64s" => Kind::Int64s { long: false },
        "l64s" => Kind::Int64s { long: true },
        "f32s" => Kind::Float32s,
        "I" => Kind::Shape { long: false },
        "L" => Kind::Shape { long: true },
        "R" => Kind::Region,
        "F" => Kind::FloatTensor,
        "N" => Kind::Int32Tensor,
        "M" => Kind::Int64Tensor,
        other => panic!("schema.txt has no kind {other:?}"),
    }
}

fn slot(word: &'static str) -> Slot {
    let list = word.contains('*');
    let word = word.trim_end_matches(['?', '~', '*']);
    let (names, what) = word.split_once(':').map_or((word, None), |(n, k)| (n, Some(k)));
    let (name, classic) = names.split_once('/').unwrap_or((names, names));
    let (what, tensors) = what.map_or((None, None), |w| match w.split_once('@') {
        Some((kind, slot)) => (Some(kind), Some(slot)),
        None => (Some(w), None),
    });
    let kind = what.map_or(if list { Kind::Tensors } else { Kind::Tensor }, kind);
    Slot { name, classic, kind, tensors }
}

static ALL: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let lines = include_str!("schema.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let (takes, gives) = line.split_once(" -> ").expect("a line of schema.txt has an arrow");
            let mut words = takes.split(' ');
            let (name, classic) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            Schema { name, classic, args: words.map(slot).collect(), results: gives.split(' ').map(slot).collect() }
        })
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Schema>> =
    LazyLock::new(|| ALL.iter().map(|s| (s.name, s)).collect());

/// The op of a name in PIR. One that ends in `_` writes its first argument, which to us is the same.
pub(crate) fn find(name: &str) -> Option<&'static Schema> {
    BY_NAME.get(name).or_else(|| BY_NAME.get(name.strip_suffix('_')?)).copied()
}

/// The ops of a type in a `.pdmodel`.
pub(crate) fn find_classic(kind: &str) -> impl Iterator<Item = &'static Schema> {
    ALL.iter().filter(move |s| s.classic == kind)
}

impl Schema {
    pub fn arg(&self, name: &str) -> Option<&Slot> {
        self.args.iter().find(|s| s.name == name)
    }
}
