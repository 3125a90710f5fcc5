//! Run-time choice of the instruction set. A loop written once is compiled for plain x86-64, AVX2 and AVX-512 (or what
//! the architecture has), and the best one the machine knows runs.

/// Defines a function whose body is compiled once per instruction set. Generic parameters stand in square brackets;
/// borrowed arguments use the lifetime `'a`. What the body calls must be `#[inline(always)]` to be vectorised with it.
#[macro_export]
macro_rules! simd_fn {
    ($(#[$m:meta])* $vis:vis fn $name:ident[$($g:ident $(: $b:path)?),*]($($arg:ident: $t:ty),* $(,)?) -> $r:ty $body:block) => {
        $(#[$m])*
        $vis fn $name<'a, $($g $(: $b)?),*>($($arg: $t),*) -> $r {
            // With the instruction set among its parameters, so that each has closures of its own, which are taken into it.
            #[inline(always)]
            #[allow(clippy::extra_unused_type_parameters)]
            fn body<'a, Set, $($g $(: $b)?),*>($($arg: $t),*) -> $r $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt,fxsr")]
                fn avx512<'a, $($g $(: $b)?),*>($($arg: $t),*) -> $r {
                    body::<$crate::simd::Avx512, $($g),*>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,fxsr")]
                fn avx2<'a, $($g $(: $b)?),*>($($arg: $t),*) -> $r {
                    body::<$crate::simd::Avx2, $($g),*>($($arg),*)
                }
                if $crate::simd::has_avx512() {
                    // SAFETY: the processor has what the function is compiled for.
                    return unsafe { avx512($($arg),*) };
                }
                if $crate::simd::has_avx2() {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body::<$crate::simd::Plain, $($g),*>($($arg),*)
        }
    };
    ($(#[$m:meta])* $vis:vis fn $name:ident[$($g:ident $(: $b:path)?),*]($($arg:ident: $t:ty),* $(,)?) $body:block) => {
        simd_fn! { $(#[$m])* $vis fn $name[$($g $(: $b)?),*]($($arg: $t),*) -> () $body }
    };
}
pub use simd_fn;

/// Instruction sets, as parameters of what is compiled for each of them.
pub struct Plain;
/// With AVX2 and what came with it.
pub struct Avx2;
/// With the parts of AVX-512 that servers have had from the start.
pub struct Avx512;

/// Has this processor all that [`Avx512`] stands for?
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn has_avx512() -> bool {
    pulp::x86::V4::try_new().is_some()
}

/// Has this processor all that [`Avx2`] stands for?
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn has_avx2() -> bool {
    pulp::x86::V3::try_new().is_some()
}

/// `[e(0), e(1), …]`, as in `each!(i => x[i])`. The standard library's `from_fn` is a function of its own where the compiler
/// leaves it one, and that one knows nothing of the instruction set its caller was compiled for.
#[macro_export]
macro_rules! each {
    ($i:ident => $e:expr) => {{
        let $i = 0;
        let mut all = [$e; _];
        for $i in 1..all.len() {
            all[$i] = $e;
        }
        all
    }};
}
pub use each;
