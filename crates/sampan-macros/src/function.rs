//! `#[function]`: a registry entry beside a plain function.

use crate::arguments::{self, doc_text};
use crate::parse::{after_equals, each_argument, pairs, params, texts};
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, ItemFn, LitStr, Result};

/// What stands inside `#[function(…)]`.
#[derive(Default)]
pub struct Attr {
    module: Option<LitStr>,
    name: Option<LitStr>,
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
                other => return Err(Error::new(key.span(), format!("unknown argument `{other}` of #[function]"))),
            }
            Ok(())
        })?;
        Ok(attr)
    }
}

pub fn expand(attr: Attr, mut item: ItemFn) -> Result<TokenStream> {
    let mut params = params(&mut item.sig)?;
    params.iter_mut().for_each(|p| p.ty = arguments::converted(&p.ty));
    let ident = &item.sig.ident;
    let name = attr.name.as_ref().map_or(ident.to_string(), LitStr::value);
    let doc = doc_text(&item.attrs);
    let module = attr.module.as_ref().map(LitStr::value).unwrap_or_default();
    let (entries, aliases) = (params.iter().map(arguments::entry), arguments::aliases(&attr.alias));
    let also = &attr.also;
    let reads = params.iter().enumerate().map(|(i, p)| {
        let (ty, name) = (&p.ty, p.name.to_string());
        quote!(<#ty as ::sampan_core::value::Arg>::get(&args[#i], #name)?)
    });
    Ok(quote! {
        #[allow(clippy::too_many_arguments)]
        #item
        ::sampan_core::__private::submit!(::sampan_core::function::Entry(&::sampan_core::function::FunctionDef {
            name: #name,
            module: #module,
            doc: #doc,
            params: &[#(#entries),*],
            aliases: #aliases,
            also: &[#(#also),*],
            run: |args| Ok(::sampan_core::Value::from(#ident(#(#reads),*)?)),
        }));
    })
}
