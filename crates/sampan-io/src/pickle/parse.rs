//! The opcodes of a pickle, read into a table of values. A call is noted, never made.

use super::table::{Blob, Node, Pickle, Ref};
use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};
use std::collections::HashMap;

// Values that take no room of their own, however often they occur.
const NONE: Ref = 0;
const FALSE: Ref = 1;
const TRUE: Ref = 2;
const EMPTY_TUPLE: Ref = 3;
/// More values than this is no checkpoint.
const MAX_NODES: usize = 1 << 24;

struct Machine<'a> {
    input: Cursor<'a>,
    nodes: Vec<Node>,
    stack: Vec<Ref>,
    marks: Vec<usize>,
    memo: HashMap<u32, Ref>,
    copied: usize,
}

/// Reads the pickle at the start of `bytes[from..]`. Offsets in errors count from the start of `bytes`.
pub(crate) fn parse(bytes: &[u8], from: usize) -> Parse<Pickle<'_>> {
    let mut machine = Machine {
        input: Cursor { bytes, at: from },
        nodes: vec![Node::None, Node::Bool(false), Node::Bool(true), Node::Tuple(Vec::new())],
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        copied: 0,
    };
    loop {
        let at = machine.input.at;
        let op = machine.input.u8()?;
        if op == b'.' {
            let root = machine.pop().map_err(|e| e.at(at))?;
            return Ok(Pickle { input: bytes, nodes: machine.nodes, root, end: machine.input.at });
        }
        machine.step(op).map_err(|e| e.at(at))?;
    }
}

fn number<T: std::str::FromStr>(line: &[u8]) -> Parse<T> {
    let text = std::str::from_utf8(line).ok().map(str::trim_end);
    text.and_then(|t| t.parse().ok()).ok_or_else(|| {
        Fault::damaged(format!("{:?} is no number that fits", String::from_utf8_lossy(&line[..line.len().min(40)])))
    })
}

/// A whole number in two's complement, of any length that fits 64 bits.
fn long(bytes: &[u8]) -> Parse<i64> {
    let fill = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut wide = [fill; 8];
    wide[..low.len()].copy_from_slice(low);
    let value = i64::from_le_bytes(wide);
    if high.iter().any(|&b| b != fill) || (value < 0) != (fill == 0xff) {
        return Err(Fault::unsupported("a whole number beyond 64 bits"));
    }
    Ok(value)
}

impl<'a> Machine<'a> {
    fn add(&mut self, node: Node) -> Parse<Ref> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Fault::damaged(format!("the pickle holds more than {MAX_NODES} values")));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as Ref - 1)
    }

    fn push(&mut self, node: Node) -> Parse<()> {
        let r = self.add(node)?;
        self.stack.push(r);
        Ok(())
    }

    fn pop(&mut self) -> Parse<Ref> {
        if self.stack.len() <= self.marks.last().copied().unwrap_or(0) {
            return Err(Fault::damaged("an instruction wants more values than there are"));
        }
        Ok(self.stack.pop().expect("it is not empty"))
    }

    fn top(&self) -> Parse<Ref> {
        self.stack.last().copied().ok_or_else(|| Fault::damaged("an instruction wants a value and there is none"))
    }

    /// Everything above the last mark.
    fn pop_mark(&mut self) -> Parse<Vec<Ref>> {
        let mark = self.marks.pop().ok_or_else(|| Fault::damaged("an instruction wants a mark and there is none"))?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, items: Vec<Ref>) -> Parse<()> {
        if items.is_empty() {
            self.stack.push(EMPTY_TUPLE);
            return Ok(());
        }
        self.push(Node::Tuple(items))
    }

    fn blob(&mut self, n: u64) -> Parse<Blob> {
        let bytes = self.input.take_u64(n)?;
        Ok(Blob::Input(self.input.at - bytes.len()..self.input.at))
    }

    fn text(&mut self, n: u64) -> Parse<()> {
        let blob = self.blob(n)?;
        let Blob::Input(range) = &blob else { unreachable!("blob gives input") };
        if std::str::from_utf8(&self.input.bytes[range.clone()]).is_err() {
            return Err(Fault::damaged("a text that is not UTF-8"));
        }
        self.push(Node::Str(blob))
    }

    fn memoize(&mut self, key: u32) -> Parse<()> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Parse<()> {
        let r = *self.memo.get(&key).ok_or_else(|| Fault::damaged(format!("nothing was remembered as {key}")))?;
        self.stack.push(r);
        Ok(())
    }

    /// A global named by two lines.
    fn global_lines(&mut self) -> Parse<Ref> {
        let mut part = || -> Parse<Blob> {
            let start = self.input.at;
            let line = self.input.line()?;
            Ok(Blob::Input(start..start + line.len()))
        };
        let node = Node::Global(part()?, part()?);
        self.add(node)
    }

    /// Notes a call. The containers of the standard library are made at once, for they are filled later.
    fn reduce(&mut self, function: Ref, args: Ref) -> Parse<()> {
        let Node::Global(module, name) = &self.nodes[function as usize] else {
            return Err(Fault::damaged("a call of something that is no function"));
        };
        let (module, name) = (module.bytes(self.input.bytes), name.bytes(self.input.bytes));
        let Node::Tuple(given) = &self.nodes[args as usize] else {
            return Err(Fault::damaged("a call whose arguments are no tuple"));
        };
        let first = given.first().copied();
        let node = match (module, name, first.map(|r| &self.nodes[r as usize])) {
            (b"collections", b"OrderedDict", None) | (b"builtins" | b"__builtin__", b"dict", None) => {
                Node::Dict(vec![])
            }
            (b"collections", b"defaultdict", _) => Node::Dict(vec![]),
            (b"collections", b"OrderedDict", Some(Node::List(pairs))) => Node::Dict(self.pairs(pairs)?),
            (b"builtins" | b"__builtin__", b"tuple", Some(Node::Tuple(_))) => {
                self.stack.extend(first);
                return Ok(());
            }
            (b"builtins" | b"__builtin__", b"tuple", Some(Node::List(v))) => Node::Tuple(v.clone()),
            (b"builtins" | b"__builtin__", b"list" | b"set" | b"frozenset", Some(Node::Tuple(v) | Node::List(v))) => {
                Node::List(v.clone())
            }
            (b"builtins" | b"__builtin__", b"list" | b"set" | b"frozenset", None) => Node::List(vec![]),
            _ => Node::Call { function, args, state: None },
        };
        // A long list that is copied again and again must not outgrow the input.
        self.copied += match &node {
            Node::List(v) | Node::Tuple(v) => v.len(),
            Node::Dict(v) => v.len(),
            _ => 0,
        };
        if self.copied > MAX_NODES {
            return Err(Fault::damaged(format!("the pickle holds more than {MAX_NODES} values")));
        }
        self.push(node)
    }

    /// The argument of `OrderedDict([[key, value], …])`.
    fn pairs(&self, pairs: &[Ref]) -> Parse<Vec<(Ref, Ref)>> {
        let pair = |&r: &Ref| match &self.nodes[r as usize] {
            Node::List(p) | Node::Tuple(p) if p.len() == 2 => Ok((p[0], p[1])),
            _ => Err(Fault::damaged("an OrderedDict of something else than pairs")),
        };
        pairs.iter().map(pair).collect()
    }

    fn append(&mut self, items: Vec<Ref>) -> Parse<()> {
        match &mut self.nodes[*self.stack.last().unwrap_or(&NONE) as usize] {
            Node::List(list) => {
                list.extend(items);
                Ok(())
            }
            _ => Err(Fault::unsupported("values are appended to something that is no list")),
        }
    }

    fn set_items(&mut self, items: &[Ref]) -> Parse<()> {
        let (pairs, rest) = items.as_chunks::<2>();
        match &mut self.nodes[*self.stack.last().unwrap_or(&NONE) as usize] {
            Node::Dict(dict) if rest.is_empty() => {
                dict.extend(pairs.iter().map(|&[k, v]| (k, v)));
                Ok(())
            }
            Node::Dict(_) => Err(Fault::damaged("a key without a value")),
            _ => Err(Fault::unsupported("entries are put into something that is no dict")),
        }
    }

    fn build(&mut self) -> Parse<()> {
        let given = self.pop()?;
        let object = self.top()?;
        match &mut self.nodes[object as usize] {
            Node::Call { state: state @ None, .. } => *state = Some(given),
            // Attributes of an OrderedDict, such as PyTorch's `_metadata`: the entries are what counts.
            Node::Dict(_) => {}
            _ => return Err(Fault::unsupported("a state is given to something that takes none")),
        }
        Ok(())
    }

    fn step(&mut self, op: u8) -> Parse<()> {
        match op {
            b'(' => self.marks.push(self.stack.len()),
            b'0' => match self.marks.last() {
                Some(&mark) if mark == self.stack.len() => drop(self.marks.pop()),
                _ => drop(self.pop()?),
            },
            b'1' => drop(self.pop_mark()?),
            b'2' => self.stack.push(self.top()?),

            b'N' => self.stack.push(NONE),
            0x88 => self.stack.push(TRUE),
            0x89 => self.stack.push(FALSE),
            b'I' => match self.input.line()? {
                b"00" => self.stack.push(FALSE),
                b"01" => self.stack.push(TRUE),
                line => {
                    let value = number(line)?;
                    self.push(Node::Int(value))?;
                }
            },
            b'L' => {
                let line = self.input.line()?;
                let value = number(line.strip_suffix(b"L").unwrap_or(line))?;
                self.push(Node::Int(value))?;
            }
            b'J' => {
                let value = self.input.i32()?.into();
                self.push(Node::Int(value))?;
            }
            b'K' => {
                let value = self.input.u8()?.into();
                self.push(Node::Int(value))?;
            }
            b'M' => {
                let value = self.input.u16()?.into();
                self.push(Node::Int(value))?;
            }
            0x8a | 0x8b => {
                let n = if op == 0x8a { self.input.u8()?.into() } else { self.input.u32()? as usize };
                let value = long(self.input.take(n)?)?;
                self.push(Node::Int(value))?;
            }
            b'F' => {
                let value = number(self.input.line()?)?;
                self.push(Node::Float(value))?;
            }
            b'G' => {
                let value = f64::from_be_bytes(self.input.array()?);
                self.push(Node::Float(value))?;
            }

            b'V' => {
                let decoded = super::escapes::raw_unicode(self.input.line()?)?;
                self.push(Node::Str(Blob::Decoded(decoded.into_bytes().into())))?;
            }
            b'S' => {
                let decoded = super::escapes::quoted(self.input.line()?)?;
                self.push(Node::OldStr(Blob::Decoded(decoded.into())))?;
            }
            b'T' | b'U' => {
                let n = if op == b'T' { self.input.u32()? } else { self.input.u8()?.into() };
                let blob = self.blob(n.into())?;
                self.push(Node::OldStr(blob))?;
            }
            b'X' | 0x8c | 0x8d => {
                let n = match op {
                    b'X' => self.input.u32()?.into(),
                    0x8c => self.input.u8()?.into(),
                    _ => self.input.u64()?,
                };
                self.text(n)?;
            }
            b'B' | b'C' | 0x8e | 0x96 => {
                let n = match op {
                    b'B' => self.input.u32()?.into(),
                    b'C' => self.input.u8()?.into(),
                    _ => self.input.u64()?,
                };
                let blob = self.blob(n)?;
                self.push(Node::Bytes(blob))?;
            }

            b')' => self.stack.push(EMPTY_TUPLE),
            b't' => {
                let items = self.pop_mark()?;
                self.tuple(items)?;
            }
            0x85..=0x87 => {
                let n = usize::from(op - 0x84);
                let mut items = (0..n).map(|_| self.pop()).collect::<Parse<Vec<_>>>()?;
                items.reverse();
                self.tuple(items)?;
            }
            // A set becomes a list: the data model has no sets.
            b']' | 0x8f => self.push(Node::List(Vec::new()))?,
            b'l' | 0x91 => {
                let items = self.pop_mark()?;
                self.push(Node::List(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' | 0x90 => {
                let items = self.pop_mark()?;
                self.append(items)?;
            }
            b'}' => self.push(Node::Dict(Vec::new()))?,
            b'd' => {
                let items = self.pop_mark()?;
                self.push(Node::Dict(Vec::new()))?;
                self.set_items(&items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }

            b'p' => {
                let key = number(self.input.line()?)?;
                self.memoize(key)?;
            }
            b'q' | b'r' => {
                let key = if op == b'q' { self.input.u8()?.into() } else { self.input.u32()? };
                self.memoize(key)?;
            }
            0x94 => self.memoize(self.memo.len() as u32)?,
            b'g' => {
                let key = number(self.input.line()?)?;
                self.recall(key)?;
            }
            b'h' | b'j' => {
                let key = if op == b'h' { self.input.u8()?.into() } else { self.input.u32()? };
                self.recall(key)?;
            }

            b'c' => {
                let global = self.global_lines()?;
                self.stack.push(global);
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let part = |r: Ref| match &self.nodes[r as usize] {
                    Node::Str(Blob::Input(range)) => Ok(Blob::Input(range.clone())),
                    _ => Err(Fault::damaged("a global whose name is no text")),
                };
                let node = Node::Global(part(module)?, part(name)?);
                self.push(node)?;
            }
            b'R' | 0x81 => {
                let (args, function) = (self.pop()?, self.pop()?);
                self.reduce(function, args)?;
            }
            0x92 => {
                let (kwargs, args, function) = (self.pop()?, self.pop()?, self.pop()?);
                if !matches!(&self.nodes[kwargs as usize], Node::Dict(d) if d.is_empty()) {
                    return Err(Fault::unsupported("an object made with named arguments"));
                }
                self.reduce(function, args)?;
            }
            b'i' | b'o' => {
                let named = if op == b'i' { Some(self.global_lines()?) } else { None };
                let mut args = self.pop_mark()?;
                let function = match named {
                    Some(function) => function,
                    None if args.is_empty() => return Err(Fault::damaged("an object without a class")),
                    None => args.remove(0),
                };
                let args = self.add(Node::Tuple(args))?;
                self.reduce(function, args)?;
            }
            b'b' => self.build()?,
            b'P' => {
                let start = self.input.at;
                let line = self.input.line()?;
                let id = self.add(Node::OldStr(Blob::Input(start..start + line.len())))?;
                self.push(Node::Persistent(id))?;
            }
            b'Q' => {
                let id = self.pop()?;
                self.push(Node::Persistent(id))?;
            }

            0x80 => {
                let version = self.input.u8()?;
                if version > 5 {
                    return Err(Fault::unsupported(format!("pickle protocol {version}; 0 to 5 are known")));
                }
            }
            0x95 => {
                let n = self.input.u64()?;
                if n > self.input.remaining() as u64 {
                    let left = self.input.remaining();
                    return Err(Fault::damaged(format!("a frame of {n} bytes is announced, {left} are left")));
                }
            }
            0x97 | 0x98 => return Err(Fault::unsupported("a pickle whose arrays were kept outside of the file")),
            0x82..=0x84 => return Err(Fault::unsupported("a pickle that needs a table of extensions")),
            _ => return Err(Fault::damaged(format!("{op:#04x} is no pickle instruction"))),
        }
        Ok(())
    }
}
