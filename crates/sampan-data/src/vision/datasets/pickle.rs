//! The few pickle opcodes that CIFAR's files are made of. Data is built, code is never run.

use sampan_core::{Error, Result};
use std::collections::HashMap;
use std::rc::Rc;

/// A pickled object.
#[derive(Clone, Debug)]
enum Object {
    Mark,
    None,
    Int(i64),
    Bytes(Rc<[u8]>),
    Text(Rc<str>),
    List(Vec<Object>),
    Tuple(Rc<[Object]>),
    Dict(Vec<(Object, Object)>),
    Name(Rc<str>),
    DType(Rc<str>),
    /// An array of bytes once it is filled.
    Array(Option<Rc<[u8]>>),
}

impl Object {
    /// Tuples around the innermost value. Other containers do not stand in containers here, so that no file can nest
    /// objects deeper than the reader's stack.
    fn depth(&self) -> usize {
        match self {
            Object::Tuple(parts) => 1 + parts.iter().map(Object::depth).max().unwrap_or(0),
            Object::List(_) | Object::Dict(_) | Object::Array(_) => 9,
            _ => 0,
        }
    }
}

/// Refuses objects that stand deeper than CIFAR's do.
fn at_most(objects: &[Object], depth: usize) -> Result<()> {
    if objects.iter().all(|o| o.depth() <= depth) { Ok(()) } else { Err(bad("objects are nested too deeply")) }
}

/// Pixels and labels of one file of CIFAR-10 or CIFAR-100 (the fine labels).
pub(super) fn read_batch(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let Object::Dict(entries) = Reader { bytes, at: 0, stack: Vec::new(), memo: HashMap::new() }.run()? else {
        return Err(bad("expected a dict"));
    };
    let find = |wanted: &str| {
        let is = |key: &Object| match key {
            Object::Bytes(b) => **b == *wanted.as_bytes(),
            Object::Text(t) => **t == *wanted,
            _ => false,
        };
        entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
    };
    let Some(Object::Array(Some(pixels))) = find("data") else {
        return Err(bad("'data' is no array of bytes"));
    };
    let Some(Object::List(labels)) = find("labels").or_else(|| find("fine_labels")) else {
        return Err(bad("there is no list 'labels' or 'fine_labels'"));
    };
    let label = |object: &Object| match object {
        Object::Int(n) => u8::try_from(*n).map_err(|_| bad(format!("label {n} is out of range"))),
        other => Err(bad(format!("a label is {other:?}"))),
    };
    Ok((pixels.to_vec(), labels.iter().map(label).collect::<Result<_>>()?))
}

fn bad(why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("not a pickled CIFAR batch: {why}"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Object>,
    memo: HashMap<u32, Object>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let part = rest.get(..n).ok_or_else(|| bad(format!("it ends at byte {}", self.bytes.len())))?;
        self.at += n;
        Ok(part)
    }

    fn number<const N: usize>(&mut self) -> Result<u64> {
        Ok(self.take(N)?.iter().rev().fold(0, |n, &b| n << 8 | b as u64))
    }

    fn sized<const N: usize>(&mut self) -> Result<&'a [u8]> {
        let n = self.number::<N>()?;
        self.take(usize::try_from(n).unwrap_or(usize::MAX))
    }

    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let n = rest.iter().position(|&b| b == b'\n').ok_or_else(|| bad("a line does not end"))?;
        self.at += n + 1;
        text(&rest[..n])
    }

    fn pop(&mut self) -> Result<Object> {
        match self.stack.pop() {
            Some(Object::Mark) | None => Err(bad("the stack is empty")),
            Some(object) => Ok(object),
        }
    }

    /// Everything above the last mark.
    fn since_mark(&mut self) -> Result<Vec<Object>> {
        let is_mark = |o: &Object| matches!(o, Object::Mark);
        let mark = self.stack.iter().rposition(is_mark).ok_or_else(|| bad("there is no mark"))?;
        let objects = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(objects)
    }

    fn tuple(&mut self, n: usize) -> Result<()> {
        let mut objects: Vec<Object> = (0..n).map(|_| self.pop()).collect::<Result<_>>()?;
        objects.reverse();
        self.push_tuple(objects)
    }

    fn push_tuple(&mut self, objects: Vec<Object>) -> Result<()> {
        at_most(&objects, 1)?;
        self.stack.push(Object::Tuple(objects.into()));
        Ok(())
    }

    fn keep(&mut self, key: u32) -> Result<()> {
        // Containers are still to be filled and would be kept empty; no CIFAR file asks for one again.
        match self.stack.last() {
            Some(Object::List(_) | Object::Dict(_) | Object::Array(_)) => {}
            Some(Object::Mark) | None => return Err(bad("there is nothing to keep")),
            Some(object) => {
                self.memo.insert(key, object.clone());
            }
        }
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<()> {
        match self.memo.get(&key) {
            None | Some(Object::Mark) => Err(bad(format!("object {key} was not kept"))),
            Some(object) => {
                self.stack.push(object.clone());
                Ok(())
            }
        }
    }

    fn append(&mut self, objects: Vec<Object>) -> Result<()> {
        at_most(&objects, 0)?;
        match self.stack.last_mut() {
            Some(Object::List(list)) => {
                list.extend(objects);
                Ok(())
            }
            _ => Err(bad("it appends to what is no list")),
        }
    }

    fn set_items(&mut self, objects: Vec<Object>) -> Result<()> {
        let Some(Object::Dict(entries)) = self.stack.last_mut() else {
            return Err(bad("it sets an item of what is no dict"));
        };
        let mut objects = objects.into_iter();
        while let (Some(key), Some(value)) = (objects.next(), objects.next()) {
            at_most(std::slice::from_ref(&key), 0)?;
            if matches!(value, Object::Dict(_)) {
                return Err(bad("a dict stands in a dict"));
            }
            entries.push((key, value));
        }
        Ok(())
    }

    /// A call, of the three functions that an array of bytes is pickled with.
    fn reduce(&mut self) -> Result<()> {
        let (args, function) = (self.pop()?, self.pop()?);
        let (Object::Tuple(args), Object::Name(name)) = (args, function) else {
            return Err(bad("it calls what is no function"));
        };
        let made = match (&*name, &*args) {
            ("numpy.core.multiarray._reconstruct" | "numpy._core.multiarray._reconstruct", _) => Object::Array(None),
            ("numpy.dtype", [Object::Text(kind), ..]) => Object::DType(kind.clone()),
            ("numpy.dtype", [Object::Bytes(kind), ..]) => Object::DType(text(kind)?.into()),
            ("_codecs.encode", [Object::Text(data), ..]) => Object::Bytes(latin1(data)?),
            _ => return Err(bad(format!("it calls {name}"))),
        };
        self.stack.push(made);
        Ok(())
    }

    /// Fills an array; the state of a dtype adds nothing.
    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        match (self.stack.last_mut(), state) {
            (Some(Object::DType(_)), _) => Ok(()),
            (Some(Object::Array(filled)), Object::Tuple(state)) => match &*state {
                [Object::Int(_), Object::Tuple(_), Object::DType(kind), order, Object::Bytes(data)] => {
                    if !matches!(&**kind, "u1" | "|u1") || !matches!(order, Object::Int(0)) {
                        return Err(bad(format!("expected rows of uint8, it has {kind} in order {order:?}")));
                    }
                    *filled = Some(data.clone());
                    Ok(())
                }
                other => Err(bad(format!("an array has {} parts", other.len()))),
            },
            _ => Err(bad("it fills what is no array")),
        }
    }

    fn run(mut self) -> Result<Object> {
        loop {
            let op = self.take(1)?[0];
            let new = match op {
                0x80 => self.take(1).map(|_| None)?,
                0x95 => self.take(8).map(|_| None)?,
                b'.' => return self.pop(),
                b'(' => Some(Object::Mark),
                b'N' => Some(Object::None),
                0x88 => Some(Object::Int(1)),
                0x89 => Some(Object::Int(0)),
                b'K' => Some(Object::Int(self.number::<1>()? as i64)),
                b'M' => Some(Object::Int(self.number::<2>()? as i64)),
                b'J' => Some(Object::Int(self.number::<4>()? as u32 as i32 as i64)),
                // Python 2 wrote bytes as strings.
                b'U' | b'C' => Some(Object::Bytes(self.sized::<1>()?.into())),
                b'T' | b'B' => Some(Object::Bytes(self.sized::<4>()?.into())),
                0x8e => Some(Object::Bytes(self.sized::<8>()?.into())),
                0x8c => Some(Object::Text(text(self.sized::<1>()?)?.into())),
                b'X' => Some(Object::Text(text(self.sized::<4>()?)?.into())),
                b']' => Some(Object::List(Vec::new())),
                b'}' => Some(Object::Dict(Vec::new())),
                b')' => Some(Object::Tuple(Rc::new([]))),
                b't' => {
                    let objects = self.since_mark()?;
                    self.push_tuple(objects).map(|()| None)?
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    Some(Object::Name(format!("{module}.{name}").into()))
                }
                0x93 => match (self.pop()?, self.pop()?) {
                    (Object::Text(name), Object::Text(module)) => Some(Object::Name(format!("{module}.{name}").into())),
                    _ => return Err(bad("a name is no text")),
                },
                0x85..=0x87 => self.tuple(op as usize - 0x84).map(|()| None)?,
                b'q' => {
                    let key = self.number::<1>()? as u32;
                    self.keep(key).map(|()| None)?
                }
                b'r' => {
                    let key = self.number::<4>()? as u32;
                    self.keep(key).map(|()| None)?
                }
                0x94 => {
                    // Numbered as they come: containers count too.
                    let key = self.memo.len() as u32;
                    self.keep(key)?;
                    self.memo.entry(key).or_insert(Object::Mark);
                    None
                }
                b'h' => {
                    let key = self.number::<1>()? as u32;
                    self.recall(key).map(|()| None)?
                }
                b'j' => {
                    let key = self.number::<4>()? as u32;
                    self.recall(key).map(|()| None)?
                }
                b'a' => {
                    let object = self.pop()?;
                    self.append(vec![object]).map(|()| None)?
                }
                b'e' => {
                    let objects = self.since_mark()?;
                    self.append(objects).map(|()| None)?
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.set_items(vec![key, value]).map(|()| None)?
                }
                b'u' => {
                    let objects = self.since_mark()?;
                    self.set_items(objects).map(|()| None)?
                }
                b'R' => self.reduce().map(|()| None)?,
                b'b' => self.build().map(|()| None)?,
                other => return Err(bad(format!("opcode {other:#04x} at byte {}", self.at - 1))),
            };
            self.stack.extend(new);
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| bad("a text is not UTF-8"))
}

/// Text that stands for bytes, one character each.
fn latin1(text: &str) -> Result<Rc<[u8]>> {
    text.chars().map(|c| u8::try_from(c as u32).map_err(|_| bad("bytes in an unknown coding"))).collect()
}
