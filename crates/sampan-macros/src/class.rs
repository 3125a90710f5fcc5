//! `#[class]`: constructors and a registry entry from one `build` function.

use crate::arguments::{self, doc_text, inner_type, options_struct, public};
use crate::parse::{Param, Presence, after_equals, each_argument, pairs, params, texts};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Ident, ImplItem, ItemImpl, LitStr, Path, Result, ReturnType, Type};

/// What stands inside `#[class(…)]`.
#[derive(Default)]
pub struct Attr {
    module: Option<LitStr>,
    name: Option<LitStr>,
    object: Option<Path>,
    alias: Vec<(Ident, Ident)>,
    also: Vec<LitStr>,
}

impl Parse for Attr {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attr = Attr::default();
        each_argument(input, |key| {
            match key.to_string().as_str() {
                "alias" => attr.alias = pairs(input)?,
                "also" => attr.also = texts(input)?,
                "module" => attr.module = Some(after_equals(input)?),
                "name" => attr.name = Some(after_equals(input)?),
                "object" => attr.object = Some(after_equals(input)?),
                other => return Err(Error::new(key.span(), format!("unknown argument `{other}` of #[class]"))),
            }
            Ok(())
        })?;
        Ok(attr)
    }
}

/// Everything read from the block.
struct Class<'a> {
    ty: &'a Type,
    name: String,
    docs: Vec<Attribute>,
    params: Vec<Param>,
    /// What `build` returns inside its `Result`.
    product: TokenStream,
}

pub fn expand(attr: Attr, mut item: ItemImpl) -> Result<TokenStream> {
    let ty = (*item.self_ty).clone();
    let Type::Path(path) = &ty else { return Err(Error::new_spanned(&ty, "a plain type is needed")) };
    let ident = path.path.segments.last().expect("a path has a segment").ident.clone();
    let build = item.items.iter_mut().find_map(|i| match i {
        ImplItem::Fn(f) if f.sig.ident == "build" => Some(f),
        _ => None,
    });
    let Some(build) = build else { return Err(Error::new_spanned(&ty, "a function `build` is needed")) };
    let docs: Vec<Attribute> = build.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    build.attrs.retain(|a| !a.path().is_ident("doc"));
    let ReturnType::Type(_, returned) = &build.sig.output else {
        return Err(Error::new_spanned(&build.sig, "`build` returns a Result"));
    };
    let product = inner_type(returned);
    let class = Class { ty: &ty, name: ident.to_string(), docs, params: params(&mut build.sig)?, product };
    let entry = registry_entry(&attr, &class)?;
    let constructors = constructors(&class);
    Ok(quote! {
        #[allow(clippy::new_ret_no_self)]
        #item
        #constructors
        #entry
    })
}

fn reads<'a>(class: &'a Class) -> impl Iterator<Item = TokenStream> + 'a {
    class.params.iter().enumerate().map(|(i, p)| {
        let ty = &p.ty;
        let name = p.name.to_string();
        quote!(<#ty as ::sampan_core::value::Arg>::get(&args[#i], #name)?)
    })
}

fn registry_entry(attr: &Attr, class: &Class) -> Result<TokenStream> {
    let ty = class.ty;
    let (Some(module), Some(object)) = (&attr.module, &attr.object) else {
        return Err(Error::new_spanned(ty, "#[class] needs `module` and `object`"));
    };
    let name = attr.name.as_ref().map_or(class.name.clone(), |n| n.value());
    let doc = doc_text(&class.docs);
    let params = class.params.iter().map(arguments::entry);
    let aliases = arguments::aliases(&attr.alias);
    let also = &attr.also;
    let reads = reads(class);
    Ok(quote! {
        ::sampan_core::__private::submit!(::sampan_core::class::Entry(&::sampan_core::class::ClassDef {
            name: #name,
            module: #module,
            doc: #doc,
            params: &[#(#params),*],
            aliases: #aliases,
            also: &[#(#also),*],
            build: |args| Ok(#object(<#ty>::build(#(#reads),*)?)),
        }));
    })
}

fn constructors(class: &Class) -> TokenStream {
    let Class { ty, name, docs, params, product } = class;
    let (opts, positional): (Vec<&Param>, Vec<&Param>) = params.iter().partition(|p| p.presence == Presence::Opt);
    let sig: Vec<TokenStream> = positional
        .iter()
        .map(|p| {
            let (n, (ty, _)) = (&p.name, public(p));
            quote!(#n: #ty)
        })
        .collect();
    let names: Vec<&Ident> = positional.iter().map(|p| &p.name).collect();
    let values = params.iter().map(|p| {
        if p.presence == Presence::Opt {
            let n = &p.name;
            quote!(opts.#n)
        } else {
            public(p).1
        }
    });
    let reads = reads(class);
    let count = params.len();
    let make = quote! {
        (|| {
            let args: [::sampan_core::Value; #count] = [#(#values),*];
            Self::build(#(#reads),*)
        })().map_err(|e: ::sampan_core::Error| e.in_op(#name))
    };
    let try_doc = "Like [`new`](Self::new), returning the error instead of panicking.";
    if opts.is_empty() {
        return quote! {
            #[allow(clippy::new_ret_no_self, clippy::new_without_default)]
            impl #ty {
                #(#docs)*
                #[track_caller]
                pub fn new(#(#sig),*) -> #product {
                    ::sampan_core::error::unwrap(Self::try_new(#(#names),*))
                }
                #[doc = #try_doc]
                pub fn try_new(#(#sig),*) -> ::sampan_core::Result<#product> {
                    #make
                }
            }
        };
    }
    let options = format_ident!("{name}Opts");
    let options_item = options_struct(&options, name, &opts, &quote!(pub));
    let with_doc = format!("[`new`](Self::new) with optional arguments: `|o| o.name(value)`, see [`{options}`].");
    quote! {
        #options_item
        #[allow(clippy::new_ret_no_self, clippy::new_without_default)]
        impl #ty {
            #(#docs)*
            #[track_caller]
            pub fn new(#(#sig),*) -> #product {
                ::sampan_core::error::unwrap(Self::try_new(#(#names),*))
            }
            #[doc = #try_doc]
            pub fn try_new(#(#sig),*) -> ::sampan_core::Result<#product> {
                Self::try_with(#(#names,)* |o| o)
            }
            #[doc = #with_doc]
            #[track_caller]
            pub fn with(#(#sig,)* options: impl FnOnce(#options) -> #options) -> #product {
                ::sampan_core::error::unwrap(Self::try_with(#(#names,)* options))
            }
            #[doc = #with_doc]
            pub fn try_with(#(#sig,)* options: impl FnOnce(#options) -> #options) -> ::sampan_core::Result<#product> {
                let opts = options(#options::default());
                #make
            }
        }
    }
}
