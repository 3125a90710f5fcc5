//! `#[derive(Layer)]`: finds parameters, buffers and sublayers by field name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// Implements `Members` for a struct: every field is visited under its name; `#[layer(skip)]` leaves one out, and
/// `#[layer(name = "_mean")]` visits it under another name.
pub fn derive(input: DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can be a layer"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "a layer's fields need names: they become the keys of its state"));
    };
    let mut visits = Vec::new();
    for f in &fields.named {
        let name = f.ident.as_ref().expect("a named field");
        let mut key = Some(name.to_string());
        for a in f.attrs.iter().filter(|a| a.path().is_ident("layer")) {
            a.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    key = None;
                } else if meta.path.is_ident("name") {
                    key = Some(meta.value()?.parse::<syn::LitStr>()?.value());
                } else {
                    return Err(meta.error("`skip` or `name = \"…\"` is meant"));
                }
                Ok(())
            })?;
        }
        if let Some(key) = key {
            visits.push(quote!(::sampan_nn::Members::visit(&self.#name, &path.join(#key), visitor);));
        }
    }
    let base = fields
        .named
        .iter()
        .find(|f| matches!(&f.ty, syn::Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Base")));
    let base = base.map(|f| {
        let field = &f.ident;
        quote!(fn base(&self) -> Option<&::sampan_nn::Base> { Some(&self.#field) })
    });
    let name = &input.ident;
    let text = name.to_string();
    let (generics, types, clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::sampan_nn::Members for #name #types #clause {
            fn visit(&self, path: &::sampan_nn::Path, visitor: &mut dyn ::sampan_nn::Visitor) {
                visitor.layer(path, ::sampan_nn::LayerRef { type_name: #text, layer: self });
                #(#visits)*
            }
            #base
        }
    })
}
