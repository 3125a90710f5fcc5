//! Tables by the addresses of nodes and leaves.

use std::hash::{BuildHasherDefault, Hasher};

pub(super) type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<AddressHasher>>;
pub(super) type HashSet<K> = std::collections::HashSet<K, BuildHasherDefault<AddressHasher>>;

/// Addresses need no strong hash, and the walk looks one up for every edge.
#[derive(Default)]
pub(super) struct AddressHasher(u64);
impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b as usize));
    }
    fn write_usize(&mut self, n: usize) {
        self.0 = (self.0.rotate_left(5) ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0.rotate_left(26)
    }
}
