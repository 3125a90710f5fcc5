//! Reads the attribute and the function it stands on.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, FnArg, Ident, ItemFn, LitFloat, LitStr, Pat, Path, Result, Token, Type, parenthesized};

/// What stands inside `#[op(…)]`.
#[derive(Default)]
pub struct Attr {
    pub inplace: bool,
    pub non_diff: bool,
    pub module: Option<LitStr>,
    pub samples: Option<Path>,
    pub onnx: Option<LitStr>,
    pub amp: Option<LitStr>,
    pub peer: Option<LitStr>,
    pub tol: Option<LitFloat>,
    pub reference: Option<Path>,
    pub alias: Vec<(Ident, Ident)>,
    pub also: Vec<LitStr>,
}

impl Parse for Attr {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attr = Attr::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            match key.to_string().as_str() {
                "inplace" => attr.inplace = true,
                "non_diff" => attr.non_diff = true,
                "alias" => {
                    let inner;
                    parenthesized!(inner in input);
                    while !inner.is_empty() {
                        let from = inner.parse()?;
                        inner.parse::<Token![=]>()?;
                        attr.alias.push((from, inner.parse()?));
                        if !inner.is_empty() {
                            inner.parse::<Token![,]>()?;
                        }
                    }
                }
                "also" => {
                    let inner;
                    parenthesized!(inner in input);
                    attr.also = Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?.into_iter().collect();
                }
                name => {
                    input.parse::<Token![=]>()?;
                    match name {
                        "module" => attr.module = Some(input.parse()?),
                        "samples" => attr.samples = Some(input.parse()?),
                        "onnx" => attr.onnx = Some(input.parse()?),
                        "amp" => attr.amp = Some(input.parse()?),
                        "peer" => attr.peer = Some(input.parse()?),
                        "tol" => attr.tol = Some(input.parse()?),
                        "reference" => attr.reference = Some(input.parse()?),
                        other => return Err(Error::new(key.span(), format!("unknown argument `{other}` of #[op]"))),
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attr)
    }
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
        let mut params = Vec::new();
        let mut primitive = false;
        for (i, arg) in item.sig.inputs.iter_mut().enumerate() {
            let FnArg::Typed(arg) = arg else { return Err(Error::new_spanned(arg, "an op has no self")) };
            let Pat::Ident(pat) = &*arg.pat else { return Err(Error::new_spanned(&arg.pat, "a plain name is needed")) };
            let name = pat.ident.clone();
            if i == 0 && name == "cx" {
                primitive = true;
                continue;
            }
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
        Ok(OpFn { attr, item, primitive, params })
    }
}
