//! What networks are made of: convolutions, pools, norms, attention, recurrent layers, sampling.

pub mod attention;
pub mod channel_moments;
pub mod channel_norm;
pub mod conv;
pub mod decoding;
pub mod flash_attention;
pub mod grid_sample;
pub(crate) mod lowering;
pub mod normalization;
pub mod pool_core;
pub mod pool_sizes;
pub mod pooling;
pub mod quantization;
pub mod recurrent;
pub mod resample;
pub mod rnn;
pub mod sequence;
pub mod shuffle;
pub mod softmax;
pub mod sparse_attention;
pub mod standardize;
