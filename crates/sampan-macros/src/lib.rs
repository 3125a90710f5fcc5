//! `#[op]`: one annotated function becomes an entry of the op registry, a `Tensor` method or free function in panicking
//! and `try_` form, and, where asked for, an in-place form.
//!
//! ```ignore
//! /// The exponential of each element.
//! #[op(inplace, samples = real_line)]
//! fn exp(cx: &Cx, x: &Tensor) -> Result<Tensor> { … }
//! ```
//!
//! A first parameter `cx: &Cx` marks a primitive, which computes and states its gradient through `cx`; without it the
//! function is a composite whose gradient follows from the ops it calls. The other parameters are the op's signature:
//! * `#[default(value)]` gives the value used when Python leaves the argument out; in Rust it stays positional;
//! * `#[opt(value)]` does the same and moves the argument into an options struct in Rust (`softmax_with(…, opts)`).
//!
//! The arguments of the attribute are listed in `docs/adding-an-op.md`.

mod arguments;
mod by_dtype;
mod class;
mod emit;
mod function;
mod layer;
mod parse;

use proc_macro::TokenStream;

/// Turns a function into a registered op. See the crate's documentation.
#[proc_macro_attribute]
pub fn op(attr: TokenStream, item: TokenStream) -> TokenStream {
    let attr = match syn::parse::<parse::Attr>(attr) {
        Ok(attr) => attr,
        Err(e) => return e.to_compile_error().into(),
    };
    let function = match syn::parse::<syn::ItemFn>(item) {
        Ok(f) => f,
        Err(e) => return e.to_compile_error().into(),
    };
    parse::OpFn::new(attr, function).map(|op| emit::emit(&op)).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Makes a struct's fields known as the members of a layer. See `sampan_nn::Layer`.
#[proc_macro_derive(Layer, attributes(layer))]
pub fn derive_layer(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as syn::DeriveInput);
    layer::derive(input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Makes a class of the registry from an `impl` block with a function `build`.
///
/// ```ignore
/// #[class(module = "nn", object = layer::object)]
/// impl Linear {
///     /// `x @ weight + bias`. … with a runnable example
///     fn build(in_features: usize, out_features: usize, #[opt(None)] weight_attr: ParamAttr) -> Result<Linear> { … }
/// }
/// ```
///
/// writes `Linear::new(3, 4)`, `Linear::try_new(3, 4)`, and, where there are `#[opt]` arguments, `LinearOpts` with
/// `Linear::with(3, 4, |o| o.weight_attr(…))` and `Linear::try_with`. `object` names the function that wraps what was
/// built for those who build by name. `alias(dim = axis)`, `also("nn.X")` and `name = "Y"` are understood as well.
#[proc_macro_attribute]
pub fn class(attr: TokenStream, item: TokenStream) -> TokenStream {
    let attr = syn::parse_macro_input!(attr as class::Attr);
    let item = syn::parse_macro_input!(item as syn::ItemImpl);
    class::expand(attr, item).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Makes a function callable by name. The function itself stays as it is.
///
/// ```ignore
/// /// doc with a runnable example
/// #[function(module = "vision.ops")]
/// pub fn nms(boxes: &Tensor, #[default(0.3)] iou_threshold: f64, …) -> Result<Tensor> { … }
/// ```
///
/// For what is no op: functions that read files, take or return more than tensors, or have a namesake among the ops. The
/// result is anything that becomes a `Value`. `#[default(value)]` is used where a caller by name leaves an argument out; an
/// argument `impl Into<T>` is read as a `T`. `alias(dim = axis)`, `also("m.f")` and `name = "g"` are understood as well.
#[proc_macro_attribute]
pub fn function(attr: TokenStream, item: TokenStream) -> TokenStream {
    let attr = syn::parse_macro_input!(attr as function::Attr);
    let item = syn::parse_macro_input!(item as syn::ItemFn);
    function::expand(attr, item).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Writes a plain function beside a generic kernel, which is renamed to `name_of`.
///
/// ```ignore
/// #[by_dtype(T in float)]
/// pub fn softmax<T: RealElement>(x: &[T], y: &mut [T], n: usize) { … }
/// ```
///
/// becomes `softmax(x: AnySlice, y: AnySliceMut, n: usize)`, which calls `softmax_of::<f32>` for float32 and so on, so that
/// the loops are compiled in the crate of the kernels and nowhere else. `&[T]`, `&mut [T]`, `&[&[T]]`, `View<T>`, `T` and
/// options of them lose their type. The groups are those of `match_dtype!`; `bytes` stands for elements that only move.
#[proc_macro_attribute]
pub fn by_dtype(attr: TokenStream, item: TokenStream) -> TokenStream {
    let attr = syn::parse_macro_input!(attr as by_dtype::Attr);
    let item = syn::parse_macro_input!(item as syn::ItemFn);
    by_dtype::expand(attr, item).unwrap_or_else(|e| e.to_compile_error()).into()
}
