//! Random numbers from a counter: Philox4x32-10 (Salmon et al., 2011). Element `i` of a fill depends on the seed, the
//! start counter and `i` alone, so any number of threads, and a GPU, give the same stream.
//!
//! Where the words come from. One counter gives a block of four 32-bit words. Fills that need one word per element
//! work in groups of 64 elements on 16 blocks: element `j` of group `g` is word `j / 16` of block `ctr + 16g + j % 16`.
//! Fills that need two words work in groups of 32: element `j` owns words `2(j / 16)` and `2(j / 16) + 1` of that
//! block. This order lets sixteen blocks run in one vector register. Fills that need an unknown number of words
//! (rejection) read blocks `(ctr + i, 0), (ctr + i, 1), …`, the second number being the upper half of the counter.

mod fill;
mod stream;

pub use fill::keep_or_drop;
pub(crate) use fill::random_bits;
pub use fill::{below, bernoulli, bernoulli_with, exponential, normal, randint, threshold, uniform};
pub use stream::{
    BadProbs, Stream, binomial, cauchy, gamma, geometric, multinomial, no_probability, poisson, randperm,
    truncated_normal,
};

use pulp::Simd;

/// Blocks computed side by side.
const LANES: usize = 16;
/// Words of [`LANES`] blocks: `words[w][b]` is word `w` of block `b`.
type Words = [[u32; LANES]; 4];

/// A seed and a position in its stream: all the state there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    seed: u64,
    offset: u64,
}

impl Generator {
    /// The start of a seed's stream.
    pub fn new(seed: u64) -> Generator {
        Generator { seed, offset: 0 }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What a checkpoint keeps: seed and offset.
    pub fn state(&self) -> (u64, u64) {
        (self.seed, self.offset)
    }

    /// Goes on from a kept state.
    pub fn from_state((seed, offset): (u64, u64)) -> Generator {
        Generator { seed, offset }
    }

    /// Sets counters for `n` elements of any distribution aside and gives the first of them.
    pub fn reserve(&mut self, n: usize) -> u64 {
        let start = self.offset;
        self.offset = start.wrapping_add((n as u64).next_multiple_of(LANES as u64));
        start
    }
}

const M0: u64 = 0xD251_1F53;
const M1: u64 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// One block: ten rounds on a 128-bit counter (`hi`, `lo`) under a 64-bit key.
pub fn philox(seed: u64, lo: u64, hi: u64) -> [u32; 4] {
    let mut c = [lo as u32, (lo >> 32) as u32, hi as u32, (hi >> 32) as u32];
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        let (a, b) = (M0 * c[0] as u64, M1 * c[2] as u64);
        c = [(b >> 32) as u32 ^ c[1] ^ k0, b as u32, (a >> 32) as u32 ^ c[3] ^ k1, a as u32];
        (k0, k1) = (k0.wrapping_add(W0), k1.wrapping_add(W1));
    }
    c
}

/// The blocks `ctr .. ctr + LANES`, in as few vectors as the machine allows. In vectors by name, since the compiler would
/// keep arrays of these words in memory from round to round.
#[inline(always)]
fn philox_lanes<S: Simd>(simd: S, seed: u64, ctr: u64) -> Words {
    let mut words: Words = [[0; LANES]; 4];
    for b in 0..LANES {
        let lo = ctr.wrapping_add(b as u64);
        words[0][b] = lo as u32;
        words[1][b] = (lo >> 32) as u32;
    }
    let (m0, m1) = (simd.splat_u32s(M0 as u32), simd.splat_u32s(M1 as u32));
    for at in (0..LANES).step_by(S::U32_LANES) {
        // SAFETY: vectors have 1, 4, 8 or 16 words, so a whole one begins at every multiple of that below `LANES`.
        let mut c = words.each_ref().map(|w| unsafe { w.as_ptr().add(at).cast::<S::u32s>().read_unaligned() });
        let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
        for _ in 0..10 {
            let ((a_low, a_high), (b_low, b_high)) =
                (simd.widening_mul_u32s(m0, c[0]), simd.widening_mul_u32s(m1, c[2]));
            let mix = |high, word, key| simd.xor_u32s(simd.xor_u32s(high, word), simd.splat_u32s(key));
            c = [mix(b_high, c[1], k0), b_low, mix(a_high, c[3], k1), a_low];
            (k0, k1) = (k0.wrapping_add(W0), k1.wrapping_add(W1));
        }
        for (w, c) in words.iter_mut().zip(c) {
            // SAFETY: as above.
            unsafe { w.as_mut_ptr().add(at).cast::<S::u32s>().write_unaligned(c) };
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_known_answers() {
        assert_eq!(philox(0, 0, 0), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox(!0, !0, !0), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let pi = philox(0x299f31d0_a4093822, 0x85a308d3_243f6a88, 0x03707344_13198a2e);
        assert_eq!(pi, [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn lanes_are_blocks() {
        let (seed, ctr) = (0x1234_5678_9abc_def0, u32::MAX as u64 - 5);
        struct All(u64, u64);
        impl pulp::WithSimd for All {
            type Output = Words;
            fn with_simd<S: Simd>(self, simd: S) -> Words {
                philox_lanes(simd, self.0, self.1)
            }
        }
        for lanes in [pulp::Arch::new().dispatch(All(seed, ctr)), philox_lanes(pulp::Scalar::new(), seed, ctr)] {
            for b in 0..LANES {
                let block = philox(seed, ctr + b as u64, 0);
                assert_eq!(block, [lanes[0][b], lanes[1][b], lanes[2][b], lanes[3][b]]);
            }
        }
    }

    #[test]
    fn generator_state_goes_on() {
        let mut g = Generator::new(7);
        assert_eq!(g.reserve(1), 0);
        assert_eq!(g.reserve(100), 16);
        let mut h = Generator::from_state(g.state());
        assert_eq!(h.reserve(3), g.reserve(9));
        assert_eq!(g, h);
    }
}
