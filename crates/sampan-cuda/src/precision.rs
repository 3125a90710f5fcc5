//! May float32 numbers be rounded to TF32, which has ten bits of mantissa and is several times as fast? As in PyTorch,
//! convolutions may and products may not, unless a program says otherwise.

use std::sync::atomic::{AtomicBool, Ordering};

static PRODUCTS: AtomicBool = AtomicBool::new(false);
static CONVOLUTIONS: AtomicBool = AtomicBool::new(true);

/// May products of matrices be rounded?
pub fn products_may_round() -> bool {
    PRODUCTS.load(Ordering::Relaxed)
}

/// May convolutions be rounded?
pub fn convolutions_may_round() -> bool {
    CONVOLUTIONS.load(Ordering::Relaxed)
}

/// Says what may be rounded from now on.
pub fn set_rounding(products: bool, convolutions: bool) {
    PRODUCTS.store(products, Ordering::Relaxed);
    CONVOLUTIONS.store(convolutions, Ordering::Relaxed);
}
