//! Dropout by a mask.

use crate::elementwise::map2;
use crate::vmath::Real;
use crate::{Bool, RealElement, View};
use sampan_macros::by_dtype;

/// Where `mask` holds, `x * scale`, else `other`.
#[by_dtype(T in float)]
pub fn masked_scale<T: RealElement>(x: View<T>, mask: View<Bool>, scale: f64, other: f64, out: &mut [T]) {
    let (scale, other) = (T::Wide::of(scale), T::from_f64(other));
    map2(move |x: T, m: Bool| if m.get() { T::narrow(x.wide() * scale) } else { other }, x, mask, out);
}
