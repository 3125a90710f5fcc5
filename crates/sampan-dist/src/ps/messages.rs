//! What clients and servers say. The messages are plain Protocol Buffers; no compiler of theirs is needed for so few.

/// The one method.
pub const PATH: &str = "/sampan.Tables/Call";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// For a number to prove the secret with.
    Hello = 0,
    /// Here is the proof.
    Prove = 1,
    /// A table of this kind, which may be there already.
    Create = 2,
    /// Values of rows.
    Pull = 3,
    /// Gradients of rows, to be applied at once.
    Push = 4,
    /// Gradients of rows, to be applied when those of all workers are there.
    PushTogether = 5,
    /// Values to be added to rows.
    Add = 6,
    /// Values that rows have from now on.
    Set = 7,
    /// Waits until all workers are here.
    Barrier = 8,
    /// Tables into files.
    Save = 9,
    /// Tables from files.
    Load = 10,
    /// How many rows there are, and how many of them in memory.
    Count = 11,
    /// A worker is done.
    Leave = 12,
}

/// A call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(enumeration = "Kind", tag = "1")]
    pub kind: i32,
    /// From whoever proved to know the secret.
    #[prost(string, tag = "2")]
    pub token: String,
    /// A table, a folder, or the name of a barrier.
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(uint64, repeated, tag = "4")]
    pub ids: Vec<u64>,
    /// Numbers of 4 bytes, the low byte first.
    #[prost(bytes = "vec", tag = "5")]
    pub values: Vec<u8>,
    /// The rate of a push; the numbers of a new table.
    #[prost(double, repeated, tag = "6")]
    pub numbers: Vec<f64>,
    /// Who asks.
    #[prost(uint64, tag = "7")]
    pub worker: u64,
    /// The version that is waited for; pieces that follow; workers that are waited for.
    #[prost(uint64, tag = "8")]
    pub count: u64,
}

/// An answer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    #[prost(bytes = "vec", tag = "1")]
    pub values: Vec<u8>,
    #[prost(uint64, repeated, tag = "2")]
    pub numbers: Vec<u64>,
    #[prost(string, tag = "3")]
    pub text: String,
}

/// Numbers as bytes.
pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Bytes as numbers; none if they are not whole ones.
pub fn to_values(bytes: &[u8]) -> Option<Vec<f32>> {
    let (whole, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| whole.iter().map(|b| f32::from_le_bytes(*b)).collect())
}
