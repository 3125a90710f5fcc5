//! Where processes meet: a small table of values by name, kept by one process and reached by all.

mod client;
mod server;

pub use client::Store;
pub use server::{STRANGERS, StoreServer};

/// The purpose of a connection to a store.
const PURPOSE: &str = "store";
/// Longer names and values are refused before memory is taken for them.
const KEY_LIMIT: usize = 1 << 10;
const VALUE_LIMIT: usize = 16 << 20;

/// What is asked of a store; each is a byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Request {
    /// Sets a value.
    Set = 1,
    /// The value, waited for.
    Get = 2,
    /// Adds to a number and gives the sum.
    Add = 3,
    /// Sets a value unless there is one, and gives the one that is there then.
    Propose = 4,
    /// Forgets every name that begins so.
    Forget = 5,
    /// What to set when this connection is lost; an empty name takes the wish back.
    Will = 6,
    /// The names that begin so, a line each.
    List = 7,
    /// The value when it is no longer the one given, waited for.
    Changed = 8,
}

impl Request {
    fn read(byte: u8) -> Option<Request> {
        use Request::*;
        [Set, Get, Add, Propose, Forget, Will, List, Changed].into_iter().find(|r| *r as u8 == byte)
    }
}

/// The fixed part of a request: what, the lengths of name and value, and a number (milliseconds to wait, or what to add).
const HEAD: usize = 1 + 2 + 4 + 8;
/// The fixed part of an answer: whether there is one, and its length.
const ANSWER_HEAD: usize = 1 + 4;
