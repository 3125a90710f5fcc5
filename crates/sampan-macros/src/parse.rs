//! Reads the attribute and the function it stands on.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, FnArg, Ident, ItemFn, LitFloat, LitStr, Pat, Path, Result, Signature, Token, Type, parenthesized,
};

/// What stands inside `#[op(…)]`.
#[derive(Default)]
pub struct Attr {
    pub inplace: bool,
    pub non_diff: bool,
    pub complex: bool,
    pub internal: bool,
    pub fused_on_gpu: bool,
    pub random: bool,
    pub module: Option<LitStr>,
    pub samples: Option<Path>,
    pub onnx: Option<LitStr>,
    pub amp: Option<LitStr>,
    pub peer: Option<LitStr>,
    pub tol: Option<LitFloat>,
    pub reference: Option<Path>,
    pub work: Option<Path>,
    pub flops: Option<Path>,
    pub several: Option<Path>,
    pub results: Vec<LitStr>,
    pub tuple: Option<LitStr>,
    pub keywords: Vec<LitStr>,
    pub alias: Vec<(Ident, Ident)>,
    pub also: Vec<LitStr>,
}

impl Parse for Attr {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attr = Attr::default();
        each_argument(input, |key| {
            match key.to_string().as_str() {
                "inplace" => attr.inplace = true,
                "non_diff" => attr.non_diff = true,
                "complex" => attr.complex = true,
                "internal" => attr.internal = true,
                "fused_on_gpu" => attr.fused_on_gpu = true,
                "random" => attr.random = true,
                "alias" => attr.alias = pairs(input)?,
                "also" => attr.also = texts(input)?,
                "results" => attr.results = texts(input)?,
                "tuple" => attr.tuple = Some(after_equals(input)?),
                "keywords" => attr.keywords = texts(input)?,
                "work" => attr.work = Some(after_equals(input)?),
                "flops" => attr.flops = Some(after_equals(input)?),
                "several" => attr.several = Some(after_equals(input)?),
                "module" => attr.module = Some(after_equals(input)?),
                "samples" => attr.samples = Some(after_equals(input)?),
                "onnx" => attr.onnx = Some(after_equals(input)?),
                "amp" => attr.amp = Some(after_equals(input)?),
                "peer" => attr.peer = Some(after_equals(input)?),
                "tol" => attr.tol = Some(after_equals(input)?),
                "reference" => attr.reference = Some(after_equals(input)?),
                other => return Err(Error::new(key.span(), format!("unknown argument `{other}` of #[op]"))),
            }
            Ok(())
        })?;
        Ok(attr)
    }
}

/// Calls `f` at each argument of an attribute; it reads what follows the name.
pub fn each_argument(input: ParseStream, mut f: impl FnMut(&Ident) -> Result<()>) -> Result<()> {
    while !input.is_empty() {
        f(&input.parse()?)?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

/// `= value`.
pub fn after_equals<T: Parse>(input: ParseStream) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// `(dim = axis, …)`.
pub fn pairs(input: ParseStream) -> Result<Vec<(Ident, Ident)>> {
    let inner;
    parenthesized!(inner in input);
    let pair = |one: ParseStream| {
        let from = one.parse()?;
        one.parse::<Token![=]>()?;
        Ok((from, one.parse()?))
    };
    Ok(inner.parse_terminated(pair, Token![,])?.into_iter().collect())
}

/// `("a", "b", …)`.
pub fn texts(input: ParseStream) -> Result<Vec<LitStr>> {
    let inner;
    parenthesized!(inner in input);
    Ok(Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?.into_iter().collect())
}

/// How a parameter is filled when Python leaves it out.
#[derive(PartialEq)]
pub enum Presence {
    Required,
    /// Has a default, stays positional in Rust.
    Default,
    /// Has a default, lives in the options struct in Rust.
    Opt,
}

/// One parameter of the op.
pub struct Param {
    pub name: Ident,
    pub ty: Type,
    pub presence: Presence,
    pub default: Option<Expr>,
}

/// A function that is an op.
pub struct OpFn {
    pub attr: Attr,
    pub item: ItemFn,
    pub primitive: bool,
    pub params: Vec<Param>,
}

impl OpFn {
    pub fn new(attr: Attr, mut item: ItemFn) -> Result<Self> {
        let mut params = params(&mut item.sig)?;
        let primitive = params.first().is_some_and(|p| p.name == "cx");
        if primitive {
            params.remove(0);
        }
        Ok(OpFn { attr, item, primitive, params })
    }
}

/// The parameters of a function; their `#[default]` and `#[opt]` are taken off.
pub fn params(sig: &mut Signature) -> Result<Vec<Param>> {
    let mut params = Vec::new();
    for arg in sig.inputs.iter_mut() {
        let FnArg::Typed(arg) = arg else { return Err(Error::new_spanned(arg, "there is no self here")) };
        let Pat::Ident(pat) = &*arg.pat else { return Err(Error::new_spanned(&arg.pat, "a plain name is needed")) };
        let name = pat.ident.clone();
        let mut presence = Presence::Required;
        let mut default = None;
        for a in std::mem::take(&mut arg.attrs) {
            if a.path().is_ident("default") || a.path().is_ident("opt") {
                presence = if a.path().is_ident("opt") { Presence::Opt } else { Presence::Default };
                default = Some(a.parse_args::<Expr>()?);
            } else {
                arg.attrs.push(a);
            }
        }
        params.push(Param { name, ty: (*arg.ty).clone(), presence, default });
    }
    Ok(params)
}
