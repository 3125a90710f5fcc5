//! Run-time choice of the instruction set. A loop written once is compiled for plain x86-64, AVX2 and AVX-512 (or what
//! the architecture has), and the best one the machine knows runs.

/// Defines a function whose body is compiled once per instruction set. Generic parameters stand in square brackets;
/// borrowed arguments use the lifetime `'a`. What the body calls must be `#[inline(always)]` to be vectorised with it.
#[macro_export]
macro_rules! simd_fn {
    ($(#[$m:meta])* $vis:vis fn $name:ident[$($g:ident $(: $b:path)?),*]($($arg:ident: $t:ty),* $(,)?) -> $r:ty $body:block) => {
        $(#[$m])*
        $vis fn $name<'a, $($g $(: $b)?),*>($($arg: $t),*) -> $r {
            struct Loop<A, P>(A, std::marker::PhantomData<P>);
            impl<'a, $($g $(: $b)?),*> pulp::WithSimd for Loop<($($t,)*), (&'a (), $($g,)*)> {
                type Output = $r;
                #[inline(always)]
                fn with_simd<Simd: pulp::Simd>(self, _: Simd) -> $r {
                    let ($($arg,)*) = self.0;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Loop(($($arg,)*), std::marker::PhantomData::<(&'a (), $($g,)*)>))
        }
    };
    ($(#[$m:meta])* $vis:vis fn $name:ident[$($g:ident $(: $b:path)?),*]($($arg:ident: $t:ty),* $(,)?) $body:block) => {
        simd_fn! { $(#[$m])* $vis fn $name[$($g $(: $b)?),*]($($arg: $t),*) -> () $body }
    };
}
pub use simd_fn;

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
