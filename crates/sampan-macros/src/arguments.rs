//! The arguments of ops and classes: their types in Rust, in the registry, and in options structs.

use crate::parse::Param;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Expr, Ident, Type};

/// A parameter's type as tokens without spaces, the key of the tables below.
pub fn key(ty: &Type) -> String {
    quote!(#ty).to_string().replace(' ', "")
}

/// The kind recorded in the registry, and whether `None` is allowed.
fn kind(ty: &Type) -> TokenStream {
    let text = key(ty);
    let (inner, optional) = match text.strip_prefix("Option<") {
        Some(rest) => (rest.trim_end_matches('>').to_string(), true),
        None => (text.clone(), text == "Axes"),
    };
    let kind = match inner.as_str() {
        "&Tensor" => "Tensor",
        "&[Tensor]" => "Tensors",
        "Operand" => "Operand",
        "i64" => "Int",
        "f64" => "Float",
        "bool" => "Bool",
        "&str" => "Str",
        "DType" => "DType",
        "&[i64]" | "Axes" | "Ints" => "Ints",
        "&[f64]" => "Floats",
        "Scalar" => "Scalar",
        "&Value" => "Any",
        "usize" => "Int",
        // A type of another crate's, which says itself how it is read (`Arg`) and written (`From`).
        _ => "Any",
    };
    let kind = format_ident!("{kind}");
    quote!(kind: ::sampan_core::op::Kind::#kind, optional: #optional)
}

/// The type a Rust caller passes, and how it becomes a `Value`.
pub fn public(p: &Param) -> (TokenStream, TokenStream) {
    let name = &p.name;
    let ty = &p.ty;
    match key(ty).as_str() {
        "&Tensor" => (quote!(&::sampan_core::Tensor), quote!(::sampan_core::Value::Tensor(#name.clone()))),
        "&[Tensor]" => (quote!(&[::sampan_core::Tensor]), quote!(::sampan_core::Value::Tensors(#name.to_vec()))),
        "&str" => (quote!(&str), quote!(::sampan_core::Value::Str(#name.into()))),
        "Operand" => (quote!(impl Into<::sampan_core::Operand>), quote!(::sampan_core::Value::from(#name.into()))),
        "Scalar" => (quote!(impl Into<::sampan_core::Scalar>), quote!(::sampan_core::Value::from(#name.into()))),
        "Axes" => (quote!(impl Into<::sampan_core::Axes>), quote!(::sampan_core::Value::from(#name.into()))),
        "&[i64]" => (quote!(impl Into<::sampan_core::Ints>), quote!(::sampan_core::Value::from(#name.into()))),
        "&[f64]" => (quote!(impl AsRef<[f64]>), quote!(::sampan_core::Value::Floats(#name.as_ref().to_vec()))),
        "&Value" => (quote!(impl Into<::sampan_core::Value>), quote!(#name.into())),
        // A number of any type, or `None`.
        "Option<Scalar>" => (quote!(impl Into<::sampan_core::Value>), quote!(#name.into())),
        "Option<i64>" | "Option<usize>" | "Option<f64>" | "Option<bool>" | "Option<DType>" => {
            (quote!(impl Into<#ty>), quote!(::sampan_core::Value::optional(#name.into())))
        }
        "Option<&Tensor>" => {
            (quote!(Option<&::sampan_core::Tensor>), quote!(::sampan_core::Value::optional(#name.cloned())))
        }
        "Option<Operand>" => (quote!(impl Into<::sampan_core::Value>), quote!(#name.into())),
        "Option<&str>" => (quote!(Option<&str>), quote!(::sampan_core::Value::optional(#name))),
        "Option<&[i64]>" => (quote!(Option<&[i64]>), quote!(::sampan_core::Value::optional(#name))),
        "Option<&[f64]>" => (quote!(Option<&[f64]>), quote!(::sampan_core::Value::optional(#name))),
        "bool" | "i64" | "usize" | "f64" | "DType" => (quote!(#ty), quote!(::sampan_core::Value::from(#name))),
        _ => (quote!(impl Into<#ty>), quote!(::sampan_core::Value::from(<#ty>::from(#name.into())))),
    }
}

/// The setter of an options struct: like `public`, but an optional argument is given bare.
fn setter(p: &Param) -> (TokenStream, TokenStream) {
    let name = &p.name;
    match key(&p.ty).as_str() {
        "Option<&Tensor>" => (quote!(&::sampan_core::Tensor), quote!(::sampan_core::Value::Tensor(#name.clone()))),
        "Option<&str>" => (quote!(&str), quote!(::sampan_core::Value::Str(#name.into()))),
        "Option<&[i64]>" => (quote!(impl Into<::sampan_core::Ints>), quote!(::sampan_core::Value::from(#name.into()))),
        "Option<Scalar>" => {
            (quote!(impl Into<::sampan_core::Scalar>), quote!(::sampan_core::Value::from(#name.into())))
        }
        "Option<i64>" | "Option<usize>" | "Option<f64>" | "Option<bool>" | "Option<DType>" => public(p),
        // An optional thing of another crate's is given bare.
        text if text.starts_with("Option<") && !text.contains('&') && text != "Option<Operand>" => {
            let inner = inner_type(&p.ty);
            (quote!(impl Into<#inner>), quote!(::sampan_core::Value::from(<#inner>::from(#name.into()))))
        }
        _ => public(p),
    }
}

/// `T` of `Option<T>` or `Result<T>`.
pub fn inner_type(ty: &Type) -> TokenStream {
    if let Type::Path(path) = ty
        && let Some(last) = path.path.segments.last()
        && let syn::PathArguments::AngleBracketed(list) = &last.arguments
        && let Some(inner) = list.args.first()
    {
        return quote!(#inner);
    }
    quote!(#ty)
}

/// `T` of `impl Into<T>`, or the type itself.
pub fn converted(ty: &Type) -> Type {
    if let Type::ImplTrait(bounds) = ty
        && let Some(syn::TypeParamBound::Trait(bound)) = bounds.bounds.first()
        && let Some(last) = bound.path.segments.last().filter(|s| s.ident == "Into")
        && let syn::PathArguments::AngleBracketed(list) = &last.arguments
        && let Some(syn::GenericArgument::Type(inner)) = list.args.first()
    {
        return inner.clone();
    }
    ty.clone()
}

fn default_value(default: &Expr) -> TokenStream {
    if quote!(#default).to_string() == "None" {
        quote!(::sampan_core::Value::None)
    } else {
        quote!(::sampan_core::Value::from(#default))
    }
}

pub fn doc_text(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|a| match &a.meta {
        syn::Meta::NameValue(nv) if nv.path.is_ident("doc") => match &nv.value {
            Expr::Lit(l) => match &l.lit {
                syn::Lit::Str(s) => Some(s.value().strip_prefix(' ').map(str::to_string).unwrap_or_else(|| s.value())),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A parameter as the registry holds it.
pub fn entry(p: &Param) -> TokenStream {
    let n = p.name.to_string();
    let kind = kind(&p.ty);
    let (default, repr) = match &p.default {
        Some(d) => {
            let v = default_value(d);
            let repr = quote!(#d).to_string().replace("- ", "-");
            (quote!(Some(|| #v)), repr)
        }
        None => (quote!(None), String::new()),
    };
    quote!(::sampan_core::op::Param { name: #n, #kind, default: #default, default_repr: #repr })
}

/// The table of other names for arguments.
pub fn aliases(pairs: &[(Ident, Ident)]) -> TokenStream {
    let pairs = pairs.iter().map(|(from, to)| {
        let (from, to) = (from.to_string(), to.to_string());
        quote!((#from, #to))
    });
    quote!(&[#(#pairs),*])
}

pub fn options_struct(struct_name: &Ident, plain: &str, opts: &[&Param], vis: &TokenStream) -> TokenStream {
    let fields: Vec<&Ident> = opts.iter().map(|p| &p.name).collect();
    let defaults = opts.iter().map(|p| default_value(p.default.as_ref().expect("#[opt] always has a value")));
    let setters = opts.iter().map(|p| {
        let n = &p.name;
        let (ty, value) = setter(p);
        let doc = format!("Sets `{n}`.");
        quote! {
            #[doc = #doc]
            #vis fn #n(mut self, #n: #ty) -> Self {
                self.#n = #value;
                self
            }
        }
    });
    let doc = format!("The optional arguments of `{plain}`, with their defaults.");
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        #vis struct #struct_name { #(#fields: ::sampan_core::Value),* }
        impl Default for #struct_name {
            fn default() -> Self {
                #struct_name { #(#fields: #defaults),* }
            }
        }
        impl #struct_name {
            /// All defaults.
            #vis fn new() -> Self {
                Self::default()
            }
            #(#setters)*
        }
    }
}
