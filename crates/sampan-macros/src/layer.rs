//! `#[derive(Layer)]`: finds parameters, buffers and sublayers by field name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// Implements `Members` for a struct: every field is visited under its name; `#[layer(skip)]` leaves one out.
pub fn derive(input: DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can be a layer"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "a layer's fields need names: they become the keys of its state"));
    };
    let visits = fields.named.iter().filter(|f| {
        !f.attrs.iter().any(|a| a.path().is_ident("layer") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "skip"))
    });
    let visits = visits.map(|f| {
        let name = f.ident.as_ref().expect("a named field");
        let text = name.to_string();
        quote!(::sampan_nn::Members::visit(&self.#name, &path.join(#text), visitor);)
    });
    let name = &input.ident;
    let text = name.to_string();
    let (generics, types, clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::sampan_nn::Members for #name #types #clause {
            fn visit(&self, path: &::sampan_nn::Path, visitor: &mut dyn ::sampan_nn::Visitor) {
                visitor.layer(path, #text);
                #(#visits)*
            }
        }
    })
}
