//! What convolution, pooling and resampling say about wrong arguments, and what the general checks do not reach.

use sampan_core::ops::conv::{Conv2dOpts, Conv2dTransposeOpts};
use sampan_core::ops::pool_sizes::FractionalMaxPool2dOpts;
use sampan_core::ops::pooling::MaxPool2dOpts;
use sampan_core::ops::resample::InterpolateOpts;
use sampan_core::{DType, GradOptions, Result, Tensor, Value, backward, grad};

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::Float32)
}

/// The message of a call that must fail.
fn refused<T>(result: Result<T>) -> String {
    result.err().expect("must be refused").to_string()
}

#[track_caller]
fn says<T>(result: Result<T>, parts: &[&str]) {
    let text = refused(result);
    assert!(parts.iter().all(|p| text.contains(p)), "{text}");
}

#[test]
fn convolution_names_the_argument() {
    let (x, w) = (zeros(&[2, 3, 5, 5]), zeros(&[8, 4, 3, 3]));
    says(x.try_conv2d(&w, None), &["conv2d: x has 3 channels, weight takes 4", "x=[2, 3, 5, 5]", "set in_channels=3"]);
    says(zeros(&[2, 5, 6, 4]).try_conv2d(&w, None), &["x has 5 channels", "channels-last?"]);
    says(zeros(&[4, 5, 5]).try_conv2d(&w, None), &["4 axes (NCHW)", "unsqueeze(0)"]);
    let w = zeros(&[8, 3, 3, 3]);
    let with = |o: Conv2dOpts| x.try_conv2d_with(&w, None, o);
    says(zeros(&[2, 3, 2, 5]).try_conv2d(&w, None), &["kernel spans 3 elements of spatial axis 0, which has 2"]);
    says(with(Conv2dOpts::new().stride(0)), &["stride must be at least 1"]);
    says(with(Conv2dOpts::new().padding(-1)), &["padding cannot be negative"]);
    says(with(Conv2dOpts::new().padding("some")), &["padding must be \"SAME\", \"VALID\""]);
    says(with(Conv2dOpts::new().padding([1, 2, 3])), &["padding must be"]);
    says(with(Conv2dOpts::new().padding(i64::MAX)), &["padding"]);
    says(with(Conv2dOpts::new().dilation([1, 1, 1])), &["dilation must be one int or 2"]);
    says(with(Conv2dOpts::new().groups(0)), &["groups must be at least 1"]);
    says(with(Conv2dOpts::new().groups(3)), &["weight takes 3 × 3 groups = 9"]);
    says(with(Conv2dOpts::new().data_format("NWHC")), &["data_format must be \"NCHW\" or \"NHWC\""]);
    says(x.try_conv2d(&w, Some(&zeros(&[7]))), &["conv2d: bias must have the shape [8]"]);
    says(Tensor::new([[[[1i64]]]]).try_conv2d(&w, None), &["conv2d: x must be a float tensor, got int64"]);
    says(x.try_conv2d(&zeros(&[8, 3, 0, 3]), None), &["kernel"]);
}

#[test]
fn same_padding_resets_the_dilation() {
    let x = Tensor::from_vec((0..72).map(|i| (i as f32).sin()).collect(), [1, 2, 6, 6]);
    let w = Tensor::from_vec((0..36).map(|i| (i as f32).cos()).collect(), [2, 2, 3, 3]);
    let with = |padding: &str, dilation: i64| {
        let o = Conv2dOpts::new().padding(padding).dilation(dilation);
        let t = Conv2dTransposeOpts::new().padding(padding).dilation(dilation);
        (x.conv2d_with(&w, None, o).to_vec::<f32>(), x.conv2d_transpose_with(&w, None, t).to_vec::<f32>())
    };
    assert_eq!(with("SAME", 2), with("same", 1));
    assert_ne!(with("VALID", 2), with("VALID", 1));
}

#[test]
fn transposed_convolution_names_the_argument() {
    let (x, w) = (zeros(&[2, 3, 5, 5]), zeros(&[3, 8, 3, 3]));
    let with = |o: Conv2dTransposeOpts| x.try_conv2d_transpose_with(&w, None, o);
    let opts = || Conv2dTransposeOpts::new().stride(2);
    assert_eq!(with(opts().output_size([12, 11])).unwrap().shape(), [2, 8, 12, 11]);
    says(with(opts().output_size(13)), &["output_size 13 of spatial axis 0 must lie between 11 and 12"]);
    says(with(opts().output_padding(2)), &["output_padding 2", "smaller than its stride"]);
    says(with(opts().output_padding(1).output_size(12)), &["exclude each other"]);
    says(with(opts().padding(9)), &["less padding"]);
    says(zeros(&[2, 4, 5, 5]).try_conv2d_transpose(&w, None), &["x has 4 channels, weight takes 3"]);
}

#[test]
fn pooling_names_the_argument() {
    let x = zeros(&[2, 3, 4, 4]);
    says(x.try_max_pool2d(5), &["max_pool2d: kernel_size 5 exceeds spatial axis 0, which has 4"]);
    says(x.try_max_pool2d(0), &["kernel_size must be at least 1"]);
    says(x.try_max_pool2d_with(2, MaxPool2dOpts::new().padding(2)), &["must be smaller than kernel_size 2"]);
    says(x.try_max_pool2d_with(2, MaxPool2dOpts::new().stride([1, 2, 3])), &["stride must be one int or 2"]);
    says(x.cast(DType::Int32).try_max_pool2d(2), &["max_pool2d: x must be a float tensor, got int32"]);
    says(x.try_adaptive_avg_pool2d([1, 2, 3]), &["output_size must be one int or 2"]);
    says(x.try_adaptive_avg_pool2d(-1), &["output_size cannot be"]);
    says(zeros(&[1, 1, 0, 2]).try_adaptive_max_pool2d(1), &["no elements to pool"]);
    says(x.try_fractional_max_pool2d(5), &["output_size 5 of spatial axis 0 must lie between 1 and 4"]);
    let fixed = FractionalMaxPool2dOpts::new().random_u(1.5);
    says(x.try_fractional_max_pool2d_with(2, fixed), &["random_u must lie between 0 and 1"]);
    let far = Tensor::new([[[[99i64]]]]);
    says(zeros(&[1, 1, 1, 1]).try_max_unpool2d(&far, 2), &["index 99 lies outside a plane of 4"]);
    says(zeros(&[1, 1, 1, 2]).try_max_unpool2d(&far, 2), &["same shape"]);
}

#[test]
fn resampling_names_the_argument() {
    let x = zeros(&[1, 4, 4, 4]);
    says(x.try_interpolate(Value::None), &["one of size and scale_factor must be given"]);
    says(x.try_interpolate([2, 2, 2]), &["size must be one number or 2"]);
    says(x.try_interpolate([0, 2]), &["size must be positive"]);
    says(x.try_interpolate_with([2, 2], InterpolateOpts::new().mode("cubic")), &["mode must be"]);
    says(x.try_interpolate_with([2, 2], InterpolateOpts::new().mode("linear")), &["needs 3 axes"]);
    says(x.try_interpolate_with([2, 2], InterpolateOpts::new().align_corners(true)), &["align_corners"]);
    says(zeros(&[1, 1, 0, 4]).try_interpolate([2, 2]), &["no elements"]);
    says(x.try_grid_sample(&zeros(&[1, 2, 2, 3])), &["[batch, height, width, 2]"]);
    says(x.try_pixel_shuffle(3), &["multiple of upscale_factor² = 9"]);
    says(x.try_pixel_unshuffle(3), &["squares"]);
    says(x.try_channel_shuffle(3), &["3 groups do not divide"]);
    says(x.try_unfold(5), &["no block of"]);
    says(zeros(&[1, 4, 3]).try_fold([3, 3], 2), &["x has 3 blocks", "has 4"]);
    says(zeros(&[2, 2, 3]).try_affine_grid([1, 1, 2, 2]), &["theta must have the shape"]);
    says(zeros(&[3, 4, 1, 1]).try_temporal_shift(2), &["no clips"]);
}

#[test]
fn ceil_mode_has_no_window_beyond_the_input() {
    let x = Tensor::from_vec((0..36).map(|v| v as f32).collect(), [1, 1, 6, 6]);
    let y = x.max_pool2d_with(2, MaxPool2dOpts::new().stride(3).ceil_mode(true));
    assert_eq!(y.to_vec::<f32>(), [7.0, 10.0, 25.0, 28.0]);
}

#[test]
fn max_pooling_prefers_nan_and_the_first() {
    let x = Tensor::new([[[1.0f32, f32::NAN, 2.0, 2.0]]]);
    let y = x.max_pool1d_with(2, sampan_core::ops::pooling::MaxPool1dOpts::new().return_mask(true));
    assert!(y.to_vec::<f32>()[0].is_nan() && y.0[1].to_vec::<i32>() == [1, 2]);
}

#[test]
fn mixed_dtypes_promote_and_gradients_come_back_in_theirs() {
    let x = zeros(&[1, 1, 3, 3]).cast(DType::Float16).requires_grad_();
    let w = zeros(&[1, 1, 2, 2]).requires_grad_();
    let y = x.conv2d(&w, None);
    assert_eq!(y.dtype(), DType::Float32);
    backward(&[y], &[], false).unwrap();
    assert_eq!((x.grad().unwrap().dtype(), w.grad().unwrap().dtype()), (DType::Float16, DType::Float32));
}

#[test]
fn third_order_through_a_grid() {
    // sample(g) = a + bx + cy + dxy on one cell, so d³/dx dy dv of its square is known: 2 (d f + f_x f_y) has a slope.
    let x = Tensor::new([[[[1.0f64, 2.0], [4.0, 9.0]]]]);
    let grid = Tensor::new([[[[0.3f64, -0.2]]]]).requires_grad_();
    let options = GradOptions { create_graph: true, ..Default::default() };
    let first = |t: &Tensor| grad(&[t.sum(())], &[grid.clone()], &[], options).unwrap().remove(0).unwrap();
    let y = x.grid_sample(&grid);
    let g1 = first(&(&y * &y));
    let g2 = first(&g1.try_select(3, 0).unwrap());
    let g3 = first(&g2.try_select(3, 1).unwrap());
    // On the cell u = (1 + x) / 2, v = (1 + y) / 2: f = 1 + u + 3v + 4uv.
    let (u, v) = (0.65, 0.4);
    let (fu, fv, d) = (1.0 + 4.0 * v, 3.0 + 4.0 * u, 4.0);
    let f = 1.0 + u + 3.0 * v + 4.0 * u * v;
    // ∂x∂y f² = (2 f_u f_v + 2 f d) / 4, and once more by x and y.
    let by_x = (2.0 * fu * d + 2.0 * fu * d) / 8.0;
    let by_y = (2.0 * d * fv + 2.0 * fv * d) / 8.0;
    let got = g3.to_vec::<f64>();
    assert!((got[0] - by_x).abs() < 1e-9 && (got[1] - by_y).abs() < 1e-9, "{got:?} {by_x} {by_y} {f}");
}
