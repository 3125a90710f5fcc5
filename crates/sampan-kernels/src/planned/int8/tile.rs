//! The innermost loop: sums of products of codes for some places and panels of channels.

/// Channels of a panel of weights.
pub(super) const PANEL: usize = 16;
/// Products that are summed at once.
pub(super) const QUAD: usize = 4;
/// Rows and panels of the largest tile.
pub(super) const ROWS: usize = 12;
pub(super) const PANELS: usize = 2;

/// Where a run of codes begins in the input, and how many there are: whole quads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub offset: usize,
    pub depth: usize,
}

/// Sums of a tile, `[row, panel, channel]`.
#[repr(align(64))]
pub(super) struct Sums(pub [i32; ROWS * PANELS * PANEL]);

/// What a machine computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// 512 bits, four products at once.
    #[cfg(target_arch = "x86_64")]
    Vnni512,
    /// 256 bits, four products at once.
    #[cfg(target_arch = "x86_64")]
    Vnni256,
    /// 256 bits, two products at once.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Nothing of the kind.
    Plain,
}

impl Machine {
    /// All that this one can be used as, the fastest first.
    pub fn all() -> Vec<Machine> {
        let mut all = vec![];
        #[cfg(target_arch = "x86_64")]
        {
            let (wide, half) = (
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni"),
                is_x86_feature_detected!("avx2"),
            );
            all.extend(wide.then_some(Machine::Vnni512));
            all.extend((half && is_x86_feature_detected!("avxvnni")).then_some(Machine::Vnni256));
            all.extend(half.then_some(Machine::Avx2));
        }
        all.push(Machine::Plain);
        all
    }

    /// The best of this machine.
    pub fn best() -> Machine {
        static BEST: std::sync::OnceLock<Machine> = std::sync::OnceLock::new();
        *BEST.get_or_init(|| Machine::all()[0])
    }

    /// Rows of a tile of so many panels.
    pub fn rows(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni512 => ROWS,
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni256 | Machine::Avx2 => 4,
            Machine::Plain => 4,
        }
    }
}

/// Rows that are summed: the first of them, and how far they lie apart.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub x: *const u8,
    pub row: usize,
    pub reads: &'a [Read],
}

/// Sums of some rows with one or two panels of weights, `[quad, channel, product]` each, `panel` bytes apart.
///
/// # Safety
/// All reads of all rows, and as many weights of each panel, are valid; the machine is this one.
pub(super) unsafe fn tile(
    machine: Machine,
    from: Source,
    rows: usize,
    w: *const i8,
    panel: usize,
    panels: usize,
    sums: &mut Sums,
) {
    assert!(rows <= machine.rows() && panels <= PANELS);
    macro_rules! pick {
        ($f:ident, $($n:literal),*) => {
            match (rows, panels) {
                $(($n, 2) => $f::<$n, 2>(from, w, panel, sums),
                  ($n, 1) => $f::<$n, 1>(from, w, panel, sums),)*
                _ => {}
            }
        };
    }
    // SAFETY: promised by the caller.
    unsafe {
        match machine {
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni512 => pick!(vnni512, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni256 | Machine::Avx2 => {
                // A panel at a time: there are half as many registers of half the size.
                for p in 0..panels {
                    let w = w.add(p * panel);
                    let to = &mut sums.0[p * PANEL..];
                    match machine {
                        Machine::Vnni256 => match rows {
                            1 => half::vnni::<1>(from, w, panels, to),
                            2 => half::vnni::<2>(from, w, panels, to),
                            3 => half::vnni::<3>(from, w, panels, to),
                            _ => half::vnni::<4>(from, w, panels, to),
                        },
                        _ => match rows {
                            1 => half::pairs::<1>(from, w, panels, to),
                            2 => half::pairs::<2>(from, w, panels, to),
                            3 => half::pairs::<3>(from, w, panels, to),
                            _ => half::pairs::<4>(from, w, panels, to),
                        },
                    }
                }
            }
            Machine::Plain => plain(from, rows, w, panel, panels, sums),
        }
    }
}

/// # Safety
/// As for [`tile`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn vnni512<const R: usize, const V: usize>(from: Source, w: *const i8, panel: usize, sums: &mut Sums) {
    use std::arch::x86_64::*;
    let mut sum = [[_mm512_setzero_si512(); V]; R];
    let mut w = w;
    // SAFETY: promised by the caller; the sums have room for the largest tile.
    unsafe {
        for read in from.reads {
            let mut x = from.x.add(read.offset);
            for _ in 0..read.depth / QUAD {
                let mut wv = [_mm512_setzero_si512(); V];
                for v in 0..V {
                    wv[v] = _mm512_loadu_si512(w.add(v * panel).cast());
                }
                for r in 0..R {
                    let xv = _mm512_set1_epi32(x.add(r * from.row).cast::<i32>().read_unaligned());
                    for v in 0..V {
                        sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], xv, wv[v]);
                    }
                }
                (x, w) = (x.add(QUAD), w.add(PANEL * QUAD));
            }
        }
        let to = sums.0.as_mut_ptr();
        for r in 0..R {
            for v in 0..V {
                _mm512_storeu_si512(to.add((r * V + v) * PANEL).cast(), sum[r][v]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod half {
    //! Vectors of 256 bits: two for a panel.

    use super::{PANEL, QUAD, Source};
    use std::arch::x86_64::*;

    macro_rules! rows {
        ($name:ident, $features:literal, $dot:expr) => {
            /// # Safety
            /// As for [`super::tile`]; `to` has room for the rows of so many panels.
            #[target_feature(enable = $features)]
            pub unsafe fn $name<const R: usize>(from: Source, w: *const i8, panels: usize, to: &mut [i32]) {
                assert!(to.len() >= ((R - 1) * panels + 1) * PANEL);
                let mut sum = [[_mm256_setzero_si256(); 2]; R];
                let mut w = w;
                // SAFETY: promised by the caller, and just asked.
                unsafe {
                    for read in from.reads {
                        let mut x = from.x.add(read.offset);
                        for _ in 0..read.depth / QUAD {
                            let wv = [_mm256_loadu_si256(w.cast()), _mm256_loadu_si256(w.add(32).cast())];
                            for r in 0..R {
                                let xv = _mm256_set1_epi32(x.add(r * from.row).cast::<i32>().read_unaligned());
                                for v in 0..2 {
                                    sum[r][v] = $dot(sum[r][v], xv, wv[v]);
                                }
                            }
                            (x, w) = (x.add(QUAD), w.add(PANEL * QUAD));
                        }
                    }
                    for r in 0..R {
                        for v in 0..2 {
                            let at = r * panels * PANEL + 8 * v;
                            _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), sum[r][v]);
                        }
                    }
                }
            }
        };
    }

    rows!(vnni, "avx2,avxvnni", |s, x, w| _mm256_dpbusd_avx_epi32(s, x, w));
    // Pairs of products are summed in 16 bits, which all eight bits of a code would overflow: the highest one goes alone.
    rows!(pairs, "avx2", |s, x, w| {
        let (low, ones) = (_mm256_and_si256(x, _mm256_set1_epi8(0x7f)), _mm256_set1_epi16(1));
        let high = _mm256_and_si256(_mm256_srli_epi16::<7>(x), _mm256_set1_epi8(1));
        let low = _mm256_madd_epi16(_mm256_maddubs_epi16(low, w), ones);
        let high = _mm256_madd_epi16(_mm256_maddubs_epi16(high, w), _mm256_set1_epi16(128));
        _mm256_add_epi32(s, _mm256_add_epi32(low, high))
    });
}

/// # Safety
/// As for [`tile`].
unsafe fn plain(from: Source, rows: usize, w: *const i8, panel: usize, panels: usize, sums: &mut Sums) {
    for r in 0..rows {
        for p in 0..panels {
            let mut sum = [0i32; PANEL];
            // SAFETY: promised by the caller.
            unsafe {
                let mut w = w.add(p * panel);
                for read in from.reads {
                    let mut x = from.x.add(r * from.row + read.offset);
                    for _ in 0..read.depth / QUAD {
                        for (c, sum) in sum.iter_mut().enumerate() {
                            for q in 0..QUAD {
                                *sum = sum.wrapping_add(i32::from(*x.add(q)) * i32::from(*w.add(c * QUAD + q)));
                            }
                        }
                        (x, w) = (x.add(QUAD), w.add(PANEL * QUAD));
                    }
                }
            }
            sums.0[(r * panels + p) * PANEL..][..PANEL].copy_from_slice(&sum);
        }
    }
}
