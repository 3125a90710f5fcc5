//! `#[by_dtype]`: beside a generic kernel a plain function that finds the element type at run time.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, Result, Token, Type, TypeSlice};

/// `T in float, D in [i64, f64]`: the type parameters, with the dtypes each is made for.
pub struct Attr(Vec<(Ident, TokenStream)>);

impl Parse for Attr {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut all = Vec::new();
        while !input.is_empty() {
            let generic: Ident = input.parse()?;
            input.parse::<Token![in]>()?;
            let group = if input.peek(syn::token::Bracket) {
                let list;
                syn::bracketed!(list in input);
                let types: TokenStream = list.parse()?;
                quote!([#types])
            } else {
                let name: Ident = input.parse()?;
                quote!(#name)
            };
            all.push((generic, group));
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Attr(all))
    }
}

/// How an argument of a generic type looks without it.
struct Erased {
    /// The type without it.
    plain: TokenStream,
    /// The typed argument, from the plain one.
    typed: TokenStream,
    /// The type parameter whose dtype it always knows.
    tells: Option<Ident>,
}

/// The type argument of a path's last segment: `T` of `View<'_, T>` and `Option<T>`.
fn argument<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|s| s.ident == name)?;
    let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    list.args.iter().find_map(|a| if let GenericArgument::Type(ty) = a { Some(ty) } else { None })
}

/// Is it a type parameter?
fn parameter(ty: &Type, generics: &[Ident]) -> Option<Ident> {
    let Type::Path(path) = ty else { return None };
    path.path.get_ident().filter(|i| generics.contains(i)).cloned()
}

/// Is it a type parameter, or a type that belongs to one, such as `T::Wide`?
fn depends(ty: &Type, generics: &[Ident]) -> bool {
    fn any(tokens: TokenStream, generics: &[Ident]) -> bool {
        tokens.into_iter().any(|t| match t {
            proc_macro2::TokenTree::Ident(i) => generics.contains(&i),
            proc_macro2::TokenTree::Group(g) => any(g.stream(), generics),
            _ => false,
        })
    }
    matches!(ty, Type::Path(_)) && any(quote!(#ty), generics)
}

/// `[T]` behind a reference, and whether that may write.
fn slice_of(ty: &Type) -> Option<(&TypeSlice, bool)> {
    let Type::Reference(reference) = ty else { return None };
    let Type::Slice(slice) = &*reference.elem else { return None };
    Some((slice, reference.mutability.is_some()))
}

/// The name of a type parameter's dtype in the plain function.
fn dtype_name(generic: &Ident) -> Ident {
    format_ident!("dtype_of_{}", generic.to_string().to_lowercase())
}

/// How an argument looks to the plain function. The elements of types `by_size` go by their size, so that only the dtype
/// says what a number among the arguments is to them.
fn erase(ty: &Type, value: TokenStream, generics: &[Ident], by_size: &[Ident]) -> Option<Erased> {
    let read = |element: &Type, v: TokenStream| match depends(element, by_size) {
        true => quote!(#v.sized()),
        false => quote!(#v.of()),
    };
    if let Some(inner) = argument(ty, "Option") {
        let Erased { plain, typed, .. } = erase(inner, quote!(v), generics, by_size)?;
        return Some(Erased { plain: quote!(Option<#plain>), typed: quote!(#value.map(|v| #typed)), tells: None });
    }
    if let Some(element) = argument(ty, "View").filter(|t| depends(t, generics)) {
        let tells = parameter(element, generics);
        return Some(Erased { plain: quote!(crate::AnyView<'_>), typed: read(element, value), tells });
    }
    if depends(ty, generics) {
        let typed = match parameter(ty, by_size).map(|g| dtype_name(&g)) {
            Some(dtype) => quote!(#value.stored(#dtype)),
            None => quote!(#value.to()),
        };
        return Some(Erased { plain: quote!(crate::Scalar), typed, tells: None });
    }
    let (slice, mutable) = slice_of(ty)?;
    if let Some(each) = slice_of(&slice.elem).filter(|(s, _)| depends(&s.elem, generics)) {
        let tells = None;
        let each_read = read(&each.0.elem, quote!(v));
        let typed = quote!(&#value.iter().map(|v| #each_read).collect::<Vec<_>>());
        return (!each.1).then_some(Erased { plain: quote!(&[crate::AnySlice<'_>]), typed, tells });
    }
    if !depends(&slice.elem, generics) {
        return None;
    }
    let plain = if mutable { quote!(crate::AnySliceMut<'_>) } else { quote!(crate::AnySlice<'_>) };
    Some(Erased { plain, typed: read(&slice.elem, value), tells: parameter(&slice.elem, generics) })
}

pub fn expand(attr: Attr, mut item: ItemFn) -> Result<TokenStream> {
    let name = item.sig.ident.clone();
    let typed_name = format_ident!("{name}_of");
    let vis = item.vis.clone();
    let docs: Vec<_> = item.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    item.attrs.retain(|a| !a.path().is_ident("doc"));
    item.sig.ident = typed_name.clone();
    item.vis = syn::parse_quote!(pub(crate));

    let generics: Vec<Ident> = attr.0.iter().map(|(g, _)| g.clone()).collect();
    let by_size: Vec<Ident> =
        attr.0.iter().filter(|(_, group)| group.to_string() == "bytes").map(|(g, _)| g.clone()).collect();
    let (mut params, mut arguments, mut dtypes) = (Vec::new(), Vec::new(), vec![None; generics.len()]);
    for input in &item.sig.inputs {
        let FnArg::Typed(arg) = input else { return Err(Error::new_spanned(input, "a kernel is no method")) };
        let Pat::Ident(pat) = &*arg.pat else { return Err(Error::new_spanned(arg, "an argument needs a name")) };
        let (ident, ty) = (&pat.ident, &arg.ty);
        match erase(ty, quote!(#ident), &generics, &by_size) {
            Some(erased) => {
                let plain = erased.plain;
                params.push(quote!(#ident: #plain));
                arguments.push(erased.typed);
                if let Some(at) = erased.tells.and_then(|t| generics.iter().position(|g| *g == t)) {
                    dtypes[at].get_or_insert(quote!(#ident.dtype()));
                }
            }
            None => {
                params.push(quote!(#ident: #ty));
                arguments.push(quote!(#ident));
            }
        }
    }
    let output = &item.sig.output;
    let mut body = quote!(#typed_name::<#(#generics),*>(#(#arguments),*));
    let mut found = Vec::new();
    for ((generic, group), dtype) in attr.0.iter().zip(&dtypes).rev() {
        let Some(dtype) = dtype else {
            return Err(Error::new_spanned(generic, "no slice or view among the arguments has elements of this type"));
        };
        let name = dtype_name(generic);
        found.push(quote!(let #name = #dtype;));
        body = quote!(crate::match_dtype!(#name, #generic in #group => #body, else => crate::any::unsupported(#name)));
    }
    Ok(quote! {
        #(#docs)*
        #vis fn #name(#(#params),*) #output {
            #(#found)*
            #body
        }
        #item
    })
}
