//! Benchmarks live in `benches/`; there is no library.
