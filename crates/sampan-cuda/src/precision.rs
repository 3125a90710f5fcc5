//! May float32 numbers be rounded to TF32, which has ten bits of mantissa and is several times as fast? As in PyTorch,
//! convolutions may and products may not, unless a program says otherwise.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static PRODUCTS: AtomicBool = AtomicBool::new(false);
static CONVOLUTIONS: LazyLock<AtomicBool> = LazyLock::new(|| {
    // NVIDIA's libraries heed the variable too.
    AtomicBool::new(std::env::var_os("NVIDIA_TF32_OVERRIDE").is_none_or(|v| v != "0"))
});

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
