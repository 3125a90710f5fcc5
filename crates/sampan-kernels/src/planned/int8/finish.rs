//! From sums of products of codes to outputs.

use super::tile::{Machine, PANEL, Sums};
use super::{BLOCK, Grid};
use crate::planned::{After, Clamp};

/// What is added to outputs; it lies as they do.
#[derive(Clone, Copy, Debug)]
pub enum Add<'a> {
    /// Nothing.
    Nothing,
    /// Numbers.
    Numbers(&'a [f32]),
    /// Codes.
    Codes(&'a [u8], Grid),
}

/// Where outputs go.
#[derive(Debug)]
pub enum Out<'a> {
    /// As numbers.
    Numbers(&'a mut [f32]),
    /// As codes.
    Codes(&'a mut [u8], Grid),
}

impl Out<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Out::Numbers(y) => y.len(),
            Out::Codes(y, _) => y.len(),
        }
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The same for the threads that share it.
#[derive(Clone, Copy)]
pub(super) enum AddAt {
    Nothing,
    Numbers(*const f32),
    Codes(*const u8, Grid),
}

#[derive(Clone, Copy)]
pub(super) enum OutAt {
    Numbers(*mut f32),
    Codes(*mut u8, Grid),
}

// SAFETY: whoever follows the pointers keeps to outputs of its own, and to memory that is only read.
unsafe impl Send for AddAt {}
// SAFETY: as above.
unsafe impl Sync for AddAt {}
// SAFETY: as above.
unsafe impl Send for OutAt {}
// SAFETY: as above.
unsafe impl Sync for OutAt {}

impl AddAt {
    pub fn new(add: Add) -> AddAt {
        match add {
            Add::Nothing => AddAt::Nothing,
            Add::Numbers(a) => AddAt::Numbers(a.as_ptr()),
            Add::Codes(a, grid) => AddAt::Codes(a.as_ptr(), grid),
        }
    }

    /// From an output on.
    pub unsafe fn at(self, at: usize) -> AddAt {
        // SAFETY: the caller's.
        unsafe {
            match self {
                AddAt::Nothing => AddAt::Nothing,
                AddAt::Numbers(a) => AddAt::Numbers(a.add(at)),
                AddAt::Codes(a, grid) => AddAt::Codes(a.add(at), grid),
            }
        }
    }
}

impl OutAt {
    pub fn new(out: Out) -> OutAt {
        match out {
            Out::Numbers(y) => OutAt::Numbers(y.as_mut_ptr()),
            Out::Codes(y, grid) => OutAt::Codes(y.as_mut_ptr(), grid),
        }
    }

    /// From an output on.
    pub unsafe fn at(self, at: usize) -> OutAt {
        // SAFETY: the caller's.
        unsafe {
            match self {
                OutAt::Numbers(y) => OutAt::Numbers(y.add(at)),
                OutAt::Codes(y, grid) => OutAt::Codes(y.add(at), grid),
            }
        }
    }
}

/// What the outputs of a layer's channels have in common; all filled up to whole panels.
pub(super) struct Channels {
    /// Added to the sums: what the code of zero put into them.
    pub shift: Vec<i32>,
    /// The steps of the weights.
    pub steps: Vec<f32>,
    pub bias: Vec<f32>,
    pub after: After,
}

/// A tile on its way to its place.
pub(super) struct Tile<'a> {
    pub channels: &'a Channels,
    /// All channels, and the first of the tile.
    pub all: usize,
    pub first: usize,
    pub rows: usize,
    pub panels: usize,
    /// The step of the input.
    pub step: f32,
    /// How far rows lie apart, and blocks of channels; `None` where channels lie side by side.
    pub row: usize,
    pub block: Option<usize>,
    /// The first row's first channel of the layer.
    pub add: AddAt,
    pub out: OutAt,
}

#[inline(always)]
fn clamp(c: Clamp, v: f32) -> f32 {
    let line = if (c.scale, c.shift) == (1.0, 0.0) { v } else { v * c.scale + c.shift };
    // A comparison with NaN gives the second.
    let line = if c.low > line { c.low } else { line };
    if c.high < line { c.high } else { line }
}

#[inline(always)]
fn activate(after: After, v: &mut [f32; PANEL]) {
    match after {
        After::Same => {}
        After::Clamp(c) if (c.scale, c.shift, c.low, c.high) == (1.0, 0.0, 0.0, f32::INFINITY) => {
            v.iter_mut().for_each(|v| *v = if 0.0 > *v { 0.0 } else { *v });
        }
        After::Clamp(c) => v.iter_mut().for_each(|v| *v = clamp(c, *v)),
        After::Gate(c) => v.iter_mut().for_each(|v| *v = (if -1e4 > *v { -1e4 } else { *v }) * clamp(c, *v)),
        After::Leaky(slope) => v.iter_mut().for_each(|v| *v = if *v > 0.0 { *v } else { slope * *v }),
    }
}

/// The code of a number: the nearest, the even one of two; zero's for what is none.
#[inline(always)]
pub(super) fn code(v: f32, inverse: f32, zero: f32) -> u8 {
    let scaled = v * inverse;
    // Large numbers, and those that are none, are held first.
    let held = match scaled {
        s if s > -256.0 => s,
        s if s.is_nan() => 0.0,
        _ => -256.0,
    };
    let held = if held < 256.0 { held } else { 256.0 };
    let rounded = held.round_ties_even() + zero;
    let rounded = if rounded > 0.0 { rounded } else { 0.0 };
    let rounded = if rounded < 255.0 { rounded } else { 255.0 };
    // SAFETY: a whole number from 0 to 255.
    unsafe { rounded.to_int_unchecked::<i32>() as u8 }
}

impl Tile<'_> {
    /// # Safety
    /// The outputs of these rows and channels, and what is added to them, are valid; the outputs are the caller's alone.
    #[inline(always)]
    unsafe fn write(&self, panels: std::ops::Range<usize>, sums: &Sums) {
        let (inverse, zero) = match self.out {
            OutAt::Codes(_, grid) => (1.0 / grid.step, f32::from(grid.zero)),
            OutAt::Numbers(_) => (1.0, 0.0),
        };
        for p in panels {
            let c = self.first + p * PANEL;
            if c >= self.all {
                break;
            }
            let real = if self.block.is_some() { PANEL } else { PANEL.min(self.all - c) };
            let at = match self.block {
                Some(step) => c / BLOCK * step,
                None => c,
            };
            let mut times = [0f32; PANEL];
            let shift: &[i32; PANEL] = self.channels.shift[c..][..PANEL].try_into().expect("a panel");
            let steps: &[f32; PANEL] = self.channels.steps[c..][..PANEL].try_into().expect("a panel");
            let bias: &[f32; PANEL] = self.channels.bias[c..][..PANEL].try_into().expect("a panel");
            for l in 0..PANEL {
                times[l] = steps[l] * self.step;
            }
            for r in 0..self.rows {
                let sum: &[i32; PANEL] =
                    sums.0[(r * self.panels + p) * PANEL..][..PANEL].try_into().expect("a panel of sums");
                let mut v = [0f32; PANEL];
                for l in 0..PANEL {
                    v[l] = sum[l].wrapping_add(shift[l]) as f32 * times[l] + bias[l];
                }
                let at = at + r * self.row;
                // SAFETY: promised by the caller.
                unsafe {
                    match self.add {
                        AddAt::Nothing => {}
                        AddAt::Numbers(add) if real == PANEL => {
                            let add = add.add(at).cast::<[f32; PANEL]>().read_unaligned();
                            (0..PANEL).for_each(|l| v[l] += add[l]);
                        }
                        AddAt::Numbers(add) => (0..real).for_each(|l| v[l] += *add.add(at + l)),
                        AddAt::Codes(add, grid) if real == PANEL => {
                            let add = add.add(at).cast::<[u8; PANEL]>().read_unaligned();
                            let zero = i32::from(grid.zero);
                            (0..PANEL).for_each(|l| v[l] += (i32::from(add[l]) - zero) as f32 * grid.step);
                        }
                        AddAt::Codes(add, grid) => {
                            let zero = i32::from(grid.zero);
                            (0..real).for_each(|l| v[l] += (i32::from(*add.add(at + l)) - zero) as f32 * grid.step);
                        }
                    }
                    activate(self.channels.after, &mut v);
                    match self.out {
                        OutAt::Numbers(y) if real == PANEL => y.add(at).cast::<[f32; PANEL]>().write_unaligned(v),
                        OutAt::Numbers(y) => (0..real).for_each(|l| *y.add(at + l) = v[l]),
                        OutAt::Codes(y, _) => {
                            let mut codes = [0u8; PANEL];
                            for l in 0..PANEL {
                                codes[l] = code(v[l], inverse, zero);
                            }
                            if real == PANEL {
                                y.add(at).cast::<[u8; PANEL]>().write_unaligned(codes);
                            } else {
                                (0..real).for_each(|l| *y.add(at + l) = codes[l]);
                            }
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As above; the machine is this one.
    pub unsafe fn finish(&self, machine: Machine, sums: &Sums) {
        // SAFETY: the caller's.
        unsafe {
            match machine {
                #[cfg(target_arch = "x86_64")]
                Machine::Vnni512 => self.wide(sums),
                #[cfg(target_arch = "x86_64")]
                Machine::Vnni256 | Machine::Avx2 => self.half(sums),
                Machine::Plain => self.write(0..self.panels, sums),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn wide(&self, sums: &Sums) {
        // SAFETY: the caller's, and all channels of a whole panel are.
        unsafe {
            for p in 0..self.panels {
                let c = self.first + p * PANEL;
                if self.block.is_none() && c + PANEL > self.all {
                    self.write(p..p + 1, sums);
                } else if c < self.all {
                    self.panel(p, c, sums);
                }
            }
        }
    }

    /// What [`write`](Tile::write) does with a whole panel, operation by operation.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn panel(&self, p: usize, c: usize, sums: &Sums) {
        use std::arch::x86_64::*;
        let (inverse, zero) = match self.out {
            OutAt::Codes(_, grid) => (1.0 / grid.step, f32::from(grid.zero)),
            OutAt::Numbers(_) => (1.0, 0.0),
        };
        let ones = _mm512_set1_ps;
        // A maximum or minimum with NaN is the second operand, as a comparison in `write` has it.
        let held = |c: Clamp, v: __m512| {
            let line = match (c.scale, c.shift) {
                (1.0, 0.0) => v,
                (scale, shift) => _mm512_add_ps(_mm512_mul_ps(v, ones(scale)), ones(shift)),
            };
            _mm512_min_ps(ones(c.high), _mm512_max_ps(ones(c.low), line))
        };
        let number = |codes: __m128i, grid: Grid| {
            let whole = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), _mm512_set1_epi32(i32::from(grid.zero)));
            _mm512_mul_ps(_mm512_cvtepi32_ps(whole), ones(grid.step))
        };
        let at = match self.block {
            Some(step) => c / BLOCK * step,
            None => c,
        };
        assert!(self.channels.shift.len() >= c + PANEL && self.channels.steps.len() >= c + PANEL);
        assert!(self.channels.bias.len() >= c + PANEL && sums.0.len() >= self.rows * self.panels * PANEL);
        // SAFETY: the lengths were just asked; outputs and what is added are the caller's promise.
        unsafe {
            let shift = _mm512_loadu_si512(self.channels.shift.as_ptr().add(c).cast());
            let times = _mm512_mul_ps(_mm512_loadu_ps(self.channels.steps.as_ptr().add(c)), ones(self.step));
            let bias = _mm512_loadu_ps(self.channels.bias.as_ptr().add(c));
            for r in 0..self.rows {
                let sum = _mm512_loadu_si512(sums.0.as_ptr().add((r * self.panels + p) * PANEL).cast());
                let sum = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, shift));
                let mut v = _mm512_add_ps(_mm512_mul_ps(sum, times), bias);
                let at = at + r * self.row;
                match self.add {
                    AddAt::Nothing => {}
                    AddAt::Numbers(add) => v = _mm512_add_ps(v, _mm512_loadu_ps(add.add(at))),
                    AddAt::Codes(add, grid) => {
                        v = _mm512_add_ps(v, number(_mm_loadu_si128(add.add(at).cast()), grid));
                    }
                }
                v = match self.channels.after {
                    After::Same => v,
                    After::Clamp(c) => held(c, v),
                    After::Gate(c) => _mm512_mul_ps(_mm512_max_ps(ones(-1e4), v), held(c, v)),
                    After::Leaky(slope) => {
                        let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(v, ones(0.0));
                        _mm512_mask_blend_ps(above, _mm512_mul_ps(ones(slope), v), v)
                    }
                };
                match self.out {
                    OutAt::Numbers(y) => _mm512_storeu_ps(y.add(at), v),
                    OutAt::Codes(y, _) => {
                        let scaled = _mm512_mul_ps(v, ones(inverse));
                        let real = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(scaled, scaled);
                        let scaled = _mm512_max_ps(_mm512_maskz_mov_ps(real, scaled), ones(-256.0));
                        let scaled = _mm512_min_ps(scaled, ones(256.0));
                        let whole = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(scaled);
                        let whole = _mm512_add_ps(whole, ones(zero));
                        let whole = _mm512_min_ps(_mm512_max_ps(whole, ones(0.0)), ones(255.0));
                        let codes = _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(whole));
                        _mm_storeu_si128(y.add(at).cast(), codes);
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn half(&self, sums: &Sums) {
        // SAFETY: the caller's.
        unsafe { self.write(0..self.panels, sums) }
    }
}
