//! Formulas as the text of a device kernel.
