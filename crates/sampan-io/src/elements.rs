//! Elements as files hold them, and tensors made of them.

use crate::fault::{Fault, Parse};
use sampan_core::{DType, Device, Tensor};
use std::borrow::Cow;

/// An element type of a file. sampan lacks the wide unsigned ones; their values are kept in the next signed type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Item {
    Ours(DType),
    U16,
    U32,
    U64,
}

impl Item {
    pub fn size(self) -> usize {
        match self {
            Item::Ours(dtype) => dtype.size(),
            Item::U16 => 2,
            Item::U32 => 4,
            Item::U64 => 8,
        }
    }

    /// The bytes that belong together in one number: a complex element is two of them.
    fn word(self) -> usize {
        self.size() / self.dtype().parts()
    }

    /// The dtype of the tensor it becomes.
    pub fn dtype(self) -> DType {
        match self {
            Item::Ours(dtype) => dtype,
            Item::U16 => DType::Int32,
            Item::U32 | Item::U64 => DType::Int64,
        }
    }

    /// By NumPy's kind and size: `f4`, `i8`, `b1`.
    pub fn from_numpy(code: &str) -> Parse<Item> {
        Ok(match code {
            "b1" | "?" => Item::Ours(DType::Bool),
            "u1" => Item::Ours(DType::UInt8),
            "i1" => Item::Ours(DType::Int8),
            "i2" => Item::Ours(DType::Int16),
            "i4" => Item::Ours(DType::Int32),
            "i8" => Item::Ours(DType::Int64),
            "f2" => Item::Ours(DType::Float16),
            "V2" | "bfloat16" => Item::Ours(DType::BFloat16),
            "f4" => Item::Ours(DType::Float32),
            "f8" => Item::Ours(DType::Float64),
            "c8" => Item::Ours(DType::Complex64),
            "c16" => Item::Ours(DType::Complex128),
            "u2" => Item::U16,
            "u4" => Item::U32,
            "u8" => Item::U64,
            _ => return Err(Fault::unsupported(lacking(code)).hint("convert the array before it is saved")),
        })
    }

    /// NumPy's name of a dtype; NumPy has no bfloat16, whose bits it keeps as raw pairs of bytes.
    pub fn numpy_code(dtype: DType) -> &'static str {
        match dtype {
            DType::Bool => "b1",
            DType::UInt8 => "u1",
            DType::Int8 => "i1",
            DType::Int16 => "i2",
            DType::Int32 => "i4",
            DType::Int64 => "i8",
            DType::Float16 => "f2",
            DType::BFloat16 => "V2",
            DType::Float32 => "f4",
            DType::Float64 => "f8",
            DType::Complex64 => "c8",
            DType::Complex128 => "c16",
        }
    }
}

fn lacking(code: &str) -> String {
    match code.chars().next() {
        Some('O') => "an array of Python objects, which only running code could restore".into(),
        Some('S' | 'U' | 'a') => "an array of strings; sampan has arrays of numbers only".into(),
        Some('M' | 'm') => "an array of dates; sampan has arrays of numbers only".into(),
        Some('V') => "an array of structures; sampan has arrays of numbers only".into(),
        _ => format!("elements of type {code:?}, which sampan does not have"),
    }
}

/// How elements lie in a file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Encoding {
    pub item: Item,
    pub big_endian: bool,
    /// First axis fastest.
    pub fortran: bool,
}

impl Encoding {
    /// The elements of a dtype as this machine has them.
    pub fn plain(dtype: DType) -> Encoding {
        Encoding { item: Item::Ours(dtype), big_endian: false, fortran: false }
    }
}

/// Extents as a file states them.
pub(crate) fn shape(dims: impl IntoIterator<Item = i64>) -> Parse<Vec<usize>> {
    let mut shape = Vec::new();
    for d in dims {
        if shape.len() == 64 {
            return Err(Fault::damaged("a shape of more than 64 axes"));
        }
        shape.push(usize::try_from(d).map_err(|_| Fault::damaged(format!("a shape with the extent {d}")))?);
    }
    Ok(shape)
}

/// The bytes an array takes.
pub(crate) fn byte_len(shape: &[usize], item: Item) -> Parse<usize> {
    // Strides are products of extents too, and overflow even where an extent of 0 makes the array empty.
    let full: Vec<usize> = shape.iter().map(|&d| d.max(1)).collect();
    sampan_core::shape::checked_numel(&full)?;
    let numel: usize = shape.iter().product();
    let bytes = numel.checked_mul(item.size());
    bytes.ok_or_else(|| Fault::damaged(format!("an array of shape {shape:?} is too large for this machine")))
}

/// A tensor of the elements in `bytes`, all of them.
pub(crate) fn tensor(bytes: &[u8], encoding: Encoding, shape: &[usize]) -> Parse<Tensor> {
    let want = byte_len(shape, encoding.item)?;
    if want != bytes.len() {
        let have = bytes.len();
        return Err(Fault::damaged(format!("an array of shape {shape:?} takes {want} bytes, and {have} are there")));
    }
    if encoding.fortran && shape.len() > 1 {
        let mut strides = vec![1i64; shape.len()];
        for axis in 1..shape.len() {
            strides[axis] = strides[axis - 1] * shape[axis - 1] as i64;
        }
        let rows = gather(bytes, encoding.item.size(), 0, shape, &strides)?;
        return tensor(&rows, Encoding { fortran: false, ..encoding }, shape);
    }
    let swapped;
    let native = if encoding.big_endian == cfg!(target_endian = "big") {
        bytes
    } else {
        swapped = swap(bytes, encoding.item.word());
        &swapped
    };
    Ok(match encoding.item {
        Item::Ours(DType::Bool) => {
            let truth: Vec<u8> = native.iter().map(|&b| u8::from(b != 0)).collect();
            Tensor::from_bytes(&truth, DType::Bool, shape)?
        }
        Item::Ours(dtype) => Tensor::from_bytes(native, dtype, shape)?,
        Item::U16 => widen(native, shape, |b| Ok(u16::from_ne_bytes(b) as i32))?,
        Item::U32 => widen(native, shape, |b| Ok(u32::from_ne_bytes(b) as i64))?,
        Item::U64 => widen(native, shape, |b| {
            i64::try_from(u64::from_ne_bytes(b))
                .map_err(|_| Fault::unsupported("an unsigned number above 2^63, which int64 cannot hold"))
        })?,
    })
}

fn widen<T: sampan_core::Element, const N: usize>(
    bytes: &[u8],
    shape: &[usize],
    f: impl Fn([u8; N]) -> Parse<T>,
) -> Parse<Tensor> {
    let values: Vec<T> = bytes.as_chunks::<N>().0.iter().map(|b| f(*b)).collect::<Parse<_>>()?;
    Ok(Tensor::try_from_slice(&values, shape)?)
}

fn swap(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    out
}

/// The elements of a strided view in row-major order. Offset and strides count elements. The caller has bounded the
/// result, which a stride of 0 could make larger than `bytes`.
pub(crate) fn gather<'a>(
    bytes: &'a [u8],
    size: usize,
    offset: usize,
    shape: &[usize],
    strides: &[i64],
) -> Parse<Cow<'a, [u8]>> {
    let outside = || Fault::damaged(format!("a view of shape {shape:?} reaches outside its {} bytes", bytes.len()));
    let numel = sampan_core::shape::checked_numel(shape)?;
    if numel == 0 {
        return Ok(Cow::Borrowed(&[]));
    }
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (&d, &s) in shape.iter().zip(strides) {
        let reach = (d as i128 - 1) * s as i128;
        *if reach < 0 { &mut low } else { &mut high } += reach;
    }
    if low < 0 || high >= (bytes.len() / size) as i128 {
        return Err(outside());
    }
    let dense =
        strides.iter().zip(shape).rev().try_fold(1i64, |step, (&s, &d)| (d == 1 || s == step).then(|| step * d as i64));
    if dense.is_some() {
        return Ok(Cow::Borrowed(&bytes[offset * size..(offset + numel) * size]));
    }
    // An axis of one element is never stepped along, and its stride may be anything.
    let strides: Vec<i64> = strides.iter().zip(shape).map(|(&s, &d)| if d == 1 { 0 } else { s }).collect();
    let mut out = Vec::with_capacity(numel * size);
    let mut index = vec![0usize; shape.len()];
    let mut at = offset as i64;
    loop {
        out.extend_from_slice(&bytes[at as usize * size..(at as usize + 1) * size]);
        let mut axis = shape.len();
        loop {
            if axis == 0 {
                return Ok(Cow::Owned(out));
            }
            axis -= 1;
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as i64;
            index[axis] = 0;
        }
    }
}

/// The elements of a tensor in row-major order, little-endian.
pub(crate) fn bytes_of(tensor: &Tensor) -> Parse<Vec<u8>> {
    if tensor.device() == Device::Meta {
        return Err(Fault::unsupported("a meta tensor holds no values to save"));
    }
    let bytes = tensor.to_bytes();
    Ok(if cfg!(target_endian = "big") { swap(&bytes, Item::Ours(tensor.dtype()).word()) } else { bytes })
}
