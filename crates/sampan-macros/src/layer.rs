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
    let root = root();
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
            visits.push(quote!(#root::Members::visit(&self.#name, &path.join(#key), visitor);));
        }
    }
    let base = fields
        .named
        .iter()
        .find(|f| matches!(&f.ty, syn::Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Base")));
    let base = base.map(|f| {
        let field = &f.ident;
        quote!(fn base(&self) -> Option<&#root::Base> { Some(&self.#field) })
    });
    let name = &input.ident;
    let text = name.to_string();
    let (generics, types, clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics #root::Members for #name #types #clause {
            fn visit(&self, path: &#root::Path, visitor: &mut dyn #root::Visitor) {
                visitor.layer(path, #root::LayerRef { type_name: #text, layer: self });
                #(#visits)*
            }
            #base
        }
    })
}

/// The path to `sampan_nn` in the crate that is being compiled: its own dependency, or what the umbrella gives on.
fn root() -> TokenStream {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|folder| std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml")).ok());
    match manifest {
        Some(text) if !text.contains("sampan-nn") => quote!(::sampan::nn),
        _ => quote!(::sampan_nn),
    }
}
