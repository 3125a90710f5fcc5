//! stub
use crate::conv::ConvShape;
pub(crate) fn suits(_: &ConvShape) -> bool { false }
pub(crate) fn is_depthwise(_: &ConvShape) -> bool { false }
pub(crate) fn forward(_: &ConvShape, _: &[f32], _: &[f32], _: Option<&[f32]>, _: &mut [f32]) {}
pub(crate) fn backward_weight(_: &ConvShape, _: &[f32], _: &[f32], _: &mut [f32]) {}
