//! `#[derive(Layer)]`: finds parameters, buffers and sublayers by field name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// Where a crate finds the layers: it depends on `sampan-nn` itself, or on the umbrella alone.
fn home(manifest: &str) -> TokenStream {
    if manifest.contains("sampan-nn") { quote!(::sampan_nn) } else { quote!(::sampan::nn) }
}

/// The manifest of the crate that is being compiled; empty where there is none, as outside of Cargo.
fn manifest() -> String {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml")).unwrap_or_default()
}

/// Implements `Members` for a struct: every field is visited under its name; `#[layer(skip)]` leaves one out, and
/// `#[layer(name = "_mean")]` visits it under another name.
pub fn derive(input: DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can be a layer"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "a layer's fields need names: they become the keys of its state"));
    };
    let nn = home(&manifest());
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
            visits.push(quote!(#nn::Members::visit(&self.#name, &path.join(#key), visitor);));
        }
    }
    let base = fields
        .named
        .iter()
        .find(|f| matches!(&f.ty, syn::Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Base")));
    let base = base.map(|f| {
        let field = &f.ident;
        quote!(fn base(&self) -> Option<&#nn::Base> { Some(&self.#field) })
    });
    let name = &input.ident;
    let text = name.to_string();
    let (generics, types, clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics #nn::Members for #name #types #clause {
            fn visit(&self, path: &#nn::Path, visitor: &mut dyn #nn::Visitor) {
                visitor.layer(path, #nn::LayerRef { type_name: #text, layer: self });
                #(#visits)*
            }
            #base
        }
    })
}

#[cfg(test)]
mod tests {
    use super::home;

    #[test]
    fn the_umbrella_alone_is_enough() {
        assert_eq!(home("[dependencies]\nsampan = \"0.1\"").to_string(), ":: sampan :: nn");
        assert_eq!(home("[dependencies]\nsampan-nn.workspace = true").to_string(), ":: sampan_nn");
    }
}
