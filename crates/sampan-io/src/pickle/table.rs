//! What a pickle was read into: a table of values that refer to each other.

use std::borrow::Cow;
use std::ops::Range;

/// A value's place in the table. Lists and dicts go on growing after others refer to them, so values refer by place.
pub(crate) type Ref = u32;

/// Bytes of the input, or bytes decoded from it.
pub(crate) enum Blob {
    Input(Range<usize>),
    Decoded(Box<[u8]>),
}

impl Blob {
    pub fn bytes<'s>(&'s self, input: &'s [u8]) -> &'s [u8] {
        match self {
            Blob::Input(range) => &input[range.clone()],
            Blob::Decoded(bytes) => bytes,
        }
    }
}

/// A value as the pickle has it.
pub(crate) enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// UTF-8, checked.
    Str(Blob),
    /// A string of Python 2: text and bytes in one, read as Latin-1 where text is wanted.
    OldStr(Blob),
    Bytes(Blob),
    List(Vec<Ref>),
    Tuple(Vec<Ref>),
    Dict(Vec<(Ref, Ref)>),
    /// Something a Python module defines, by name only.
    Global(Blob, Blob),
    /// What calling a global would make, with the state given to it later.
    Call {
        function: Ref,
        args: Ref,
        state: Option<Ref>,
    },
    /// A value kept outside of the pickle.
    Persistent(Ref),
}

/// A pickle that was read.
pub(crate) struct Pickle<'a> {
    pub(super) input: &'a [u8],
    pub(super) nodes: Vec<Node>,
    pub root: Ref,
    /// Where the input goes on after it.
    pub end: usize,
}

impl<'a> Pickle<'a> {
    pub fn node(&self, r: Ref) -> &Node {
        &self.nodes[r as usize]
    }

    pub fn blob<'s>(&'s self, blob: &'s Blob) -> &'s [u8] {
        blob.bytes(self.input)
    }

    /// The text of a string.
    pub fn text(&self, r: Ref) -> Option<Cow<'_, str>> {
        match self.node(r) {
            Node::Str(b) => std::str::from_utf8(self.blob(b)).ok().map(Cow::Borrowed),
            Node::OldStr(b) => Some(Cow::Owned(self.blob(b).iter().map(|&c| c as char).collect())),
            _ => None,
        }
    }

    /// The elements of a tuple or list.
    pub fn items(&self, r: Ref) -> Option<&[Ref]> {
        if let Node::Tuple(v) | Node::List(v) = self.node(r) { Some(v) } else { None }
    }

    pub fn int(&self, r: Ref) -> Option<i64> {
        match self.node(r) {
            Node::Int(i) => Some(*i),
            Node::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// The ids of all values kept outside.
    pub fn persistent(&self) -> impl Iterator<Item = Ref> {
        self.nodes.iter().filter_map(|n| if let Node::Persistent(id) = n { Some(*id) } else { None })
    }

    /// `module`, `name` of a global.
    pub fn global(&self, r: Ref) -> Option<(&str, &str)> {
        let Node::Global(module, name) = self.node(r) else { return None };
        Some((std::str::from_utf8(self.blob(module)).ok()?, std::str::from_utf8(self.blob(name)).ok()?))
    }

    /// `(module, name), arguments, state` of a call.
    pub fn call(&self, r: Ref) -> Option<((&str, &str), &[Ref], Option<Ref>)> {
        let Node::Call { function, args, state } = self.node(r) else { return None };
        Some((self.global(*function)?, self.items(*args)?, *state))
    }
}
