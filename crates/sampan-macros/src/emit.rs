//! Writes the registry entry and the typed functions.

use crate::arguments::{self, doc_text, key, options_struct, public};
use crate::parse::{OpFn, Param, Presence};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Ident, LitStr};

pub fn emit(op: &OpFn) -> TokenStream {
    let mut item = op.item.clone();
    let name = item.sig.ident.clone();
    let text = name.to_string();
    let text = text.strip_prefix("r#").unwrap_or(&text).to_string();
    let body_name = format_ident!("__op_{text}");
    let static_name = format_ident!("{}", text.to_uppercase());
    let docs: Vec<Attribute> = item.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    let doc = doc_text(&docs);
    item.attrs.retain(|a| !a.path().is_ident("doc"));
    item.sig.ident = body_name.clone();
    item.vis = syn::Visibility::Inherited;

    let entry = match registry_entry(op, &text, &doc, &body_name, &static_name) {
        Ok(entry) => entry,
        Err(e) => return e.to_compile_error(),
    };
    let api = typed_api(op, &name, &static_name, &docs);
    quote! {
        #[allow(clippy::too_many_arguments)]
        #item
        #entry
        #api
    }
}

fn call_body(op: &OpFn, target: TokenStream, with_cx: bool) -> TokenStream {
    let gets = op.params.iter().enumerate().map(|(i, p)| {
        let ty = &p.ty;
        let n = LitStr::new(&p.name.to_string(), p.name.span());
        quote!(<#ty as ::sampan_core::value::Arg>::get(&cx.args()[#i], #n)?)
    });
    let cx = with_cx.then(|| quote!(cx,));
    quote! {
        |cx: &::sampan_core::dispatch::Cx| -> ::sampan_core::Result<::sampan_core::op::Outputs> {
            Ok(::sampan_core::op::OutputSet::into_outputs(#target(#cx #(#gets),*)?))
        }
    }
}

fn registry_entry(op: &OpFn, text: &str, doc: &str, body: &Ident, static_name: &Ident) -> syn::Result<TokenStream> {
    let a = &op.attr;
    let params = op.params.iter().map(arguments::entry);
    let aliases = arguments::aliases(&a.alias);
    let also = &a.also;
    let module = a.module.as_ref().map(|m| m.value()).unwrap_or_default();
    let option = |o: &Option<LitStr>| o.as_ref().map_or(quote!(None), |s| quote!(Some(#s)));
    let (onnx, peer, tuple) = (option(&a.onnx), option(&a.peer), option(&a.tuple));
    let amp = amp(a.amp.as_ref())?;
    let path = |p: &Option<syn::Path>| p.as_ref().map_or(quote!(None), |p| quote!(Some(#p)));
    let (samples, work, flops, several) = (path(&a.samples), path(&a.work), path(&a.flops), path(&a.several));
    let (results, keywords) = (&a.results, &a.keywords);
    let tol = a.tol.as_ref().map_or(quote!(None), |t| quote!(Some(#t)));
    let run = call_body(op, quote!(#body), op.primitive);
    let reference = match &a.reference {
        Some(path) => {
            let f = call_body(op, quote!(#path), false);
            quote!(Some(#f))
        }
        None => quote!(None),
    };
    let ret = match &op.item.sig.output {
        syn::ReturnType::Type(_, ty) => quote!(#ty),
        syn::ReturnType::Default => quote!(()),
    };
    let (primitive, non_diff, complex) = (op.primitive, a.non_diff, a.complex);
    let (internal, random, fused_on_gpu) = (a.internal, a.random, a.fused_on_gpu);
    let inplace = a.inplace || text.ends_with('_');
    Ok(quote! {
        #[doc(hidden)]
        pub static #static_name: ::sampan_core::op::OpDef = ::sampan_core::op::OpDef {
            name: #text,
            module: #module,
            file: file!(),
            doc: #doc,
            params: &[#(#params),*],
            aliases: #aliases,
            also: &[#(#also),*],
            internal: #internal,
            fused_on_gpu: #fused_on_gpu,
            returns: <#ret as ::sampan_core::op::ReturnType>::RETURNS,
            results: &[#(#results),*],
            tuple: #tuple,
            several: #several,
            keywords: &[#(#keywords),*],
            primitive: #primitive,
            non_diff: #non_diff,
            complex: #complex,
            inplace: #inplace,
            random: #random,
            amp: #amp,
            work: #work,
            flops: #flops,
            onnx: #onnx,
            peer: #peer,
            tol: #tol,
            run: #run,
            reference: #reference,
            samples: #samples,
        };
        ::sampan_core::__private::submit!(::sampan_core::op::Entry(&#static_name));
    })
}

/// What mixed precision does with the op, by its word.
fn amp(word: Option<&LitStr>) -> syn::Result<TokenStream> {
    let Some(word) = word else { return Ok(quote!(::sampan_core::op::Amp::Follow)) };
    let variant = match word.value().as_str() {
        "white" => "White",
        "black" => "Black",
        "black_o2" => "BlackO2",
        "black_data" => "BlackData",
        "data" => "Data",
        "keep" => "Keep",
        _ => return Err(syn::Error::new(word.span(), "white, black, black_o2, black_data, data or keep")),
    };
    let variant = format_ident!("{variant}");
    Ok(quote!(::sampan_core::op::Amp::#variant))
}

fn typed_api(op: &OpFn, name: &Ident, static_name: &Ident, docs: &[Attribute]) -> TokenStream {
    let text = name.to_string();
    let plain = text.strip_prefix("r#").unwrap_or(&text).to_string();
    let ret = match &op.item.sig.output {
        syn::ReturnType::Type(_, ty) => quote!(<#ty as ::sampan_core::op::ReturnType>::Value),
        syn::ReturnType::Default => quote!(()),
    };
    let method = op.params.first().is_some_and(|p| key(&p.ty) == "&Tensor");
    let positional: Vec<&Param> =
        op.params.iter().skip(method as usize).filter(|p| p.presence != Presence::Opt).collect();
    let opts: Vec<&Param> = op.params.iter().filter(|p| p.presence == Presence::Opt).collect();
    let sig: Vec<TokenStream> = positional
        .iter()
        .map(|p| {
            let (n, (ty, _)) = (&p.name, public(p));
            quote!(#n: #ty)
        })
        .collect();
    let names: Vec<&Ident> = positional.iter().map(|p| &p.name).collect();
    let receiver = method.then(|| quote!(&self,));
    let this = if method { quote!(self.) } else { quote!() };
    let args: Vec<TokenStream> = op
        .params
        .iter()
        .enumerate()
        .map(|(i, p)| {
            if i == 0 && method {
                return quote!(::sampan_core::Value::Tensor(self.clone()));
            }
            if p.presence == Presence::Opt {
                let n = &p.name;
                return quote!(opts.#n);
            }
            public(p).1
        })
        .collect();

    let vis = match op.attr.internal {
        // Part of other ops: not every form of it has a caller.
        true => quote!(#[allow(dead_code)] pub(crate)),
        false => quote!(pub),
    };
    if plain.ends_with('_') {
        return inplace_only_api(name, static_name, docs, &sig, &names, &args);
    }
    let try_name = format_ident!("try_{plain}");
    let dispatch = quote!(
        ::sampan_core::dispatch::dispatch(&#static_name, ::sampan_core::__private::smallvec![#(#args),*])
            .map(<#ret as ::sampan_core::op::OutputSet>::from_outputs)
    );
    let try_doc = format!("Like [`{plain}`](Self::{plain}), returning the error instead of panicking.");
    let try_doc = if method { try_doc } else { try_doc.replace("Self::", "") };

    let mut extra = TokenStream::new();
    let functions = if opts.is_empty() {
        quote! {
            #(#docs)*
            #[track_caller]
            #vis fn #name(#receiver #(#sig),*) -> #ret {
                ::sampan_core::error::unwrap(#this #try_name(#(#names),*))
            }
            #[doc = #try_doc]
            #[track_caller]
            #vis fn #try_name(#receiver #(#sig),*) -> ::sampan_core::Result<#ret> {
                #dispatch
            }
        }
    } else {
        let struct_name = format_ident!("{}", camel(&plain));
        extra = options_struct(&struct_name, &plain, &opts, &vis);
        let with = format_ident!("{plain}_with");
        let try_with = format_ident!("try_{plain}_with");
        let with_doc = format!("[`{plain}`](Self::{plain}) with the optional arguments of [`{}`].", camel(&plain));
        let with_doc = if method { with_doc } else { with_doc.replace("Self::", "") };
        quote! {
            #(#docs)*
            #[track_caller]
            #vis fn #name(#receiver #(#sig),*) -> <#ret as ::sampan_core::op::OutputSet>::Plain {
                ::sampan_core::error::unwrap(#this #try_name(#(#names),*))
            }
            #[doc = #try_doc]
            #[track_caller]
            #vis fn #try_name(#receiver #(#sig),*) -> ::sampan_core::Result<<#ret as ::sampan_core::op::OutputSet>::Plain> {
                #this #try_with(#(#names,)* Default::default()).map(::sampan_core::op::OutputSet::plain)
            }
            #[doc = #with_doc]
            #[track_caller]
            #vis fn #with(#receiver #(#sig,)* opts: #struct_name) -> #ret {
                ::sampan_core::error::unwrap(#this #try_with(#(#names,)* opts))
            }
            #[doc = #with_doc]
            #[track_caller]
            #vis fn #try_with(#receiver #(#sig,)* opts: #struct_name) -> ::sampan_core::Result<#ret> {
                #dispatch
            }
        }
    };
    let inplace = if op.attr.inplace && method { inplace_api(&plain, &sig, &names, &vis) } else { quote!() };
    if method {
        quote! { #extra impl ::sampan_core::Tensor { #functions #inplace } }
    } else {
        quote! { #extra #functions }
    }
}

fn inplace_api(plain: &str, sig: &[TokenStream], names: &[&Ident], vis: &TokenStream) -> TokenStream {
    let (name, try_name) = (format_ident!("{plain}_"), format_ident!("try_{plain}_"));
    let out = format_ident!("try_{plain}");
    let doc = format!("[`{plain}`](Self::{plain}) that writes its result into this tensor's memory.");
    quote! {
        #[doc = #doc]
        #[track_caller]
        #vis fn #name(&mut self, #(#sig),*) -> &mut Self {
            ::sampan_core::error::unwrap(self.#try_name(#(#names),*));
            self
        }
        #[doc = #doc]
        #[track_caller]
        #vis fn #try_name(&mut self, #(#sig),*) -> ::sampan_core::Result<()> {
            self.replaced_by(concat!(#plain, "_"), |this| this.#out(#(#names),*))
        }
    }
}

/// An op whose name ends in `_` has no other form: its body computes values, which are written into the first argument.
fn inplace_only_api(
    name: &Ident,
    static_name: &Ident,
    docs: &[Attribute],
    sig: &[TokenStream],
    names: &[&Ident],
    args: &[TokenStream],
) -> TokenStream {
    let try_name = format_ident!("try_{name}");
    let try_doc = format!("Like [`{name}`](Self::{name}), returning the error instead of panicking.");
    quote! {
        impl ::sampan_core::Tensor {
            #(#docs)*
            #[track_caller]
            pub fn #name(&mut self, #(#sig),*) -> &mut Self {
                ::sampan_core::error::unwrap(self.#try_name(#(#names),*));
                self
            }
            #[doc = #try_doc]
            #[track_caller]
            pub fn #try_name(&mut self, #(#sig),*) -> ::sampan_core::Result<()> {
                *self = ::sampan_core::dispatch::dispatch_inplace(&#static_name, ::sampan_core::__private::smallvec![#(#args),*])?;
                Ok(())
            }
        }
    }
}

fn camel(name: &str) -> String {
    let mut s: String = name
        .split('_')
        .map(|w| {
            let mut c = w.chars();
            c.next().map(|f| f.to_uppercase().collect::<String>() + c.as_str()).unwrap_or_default()
        })
        .collect();
    s.push_str("Opts");
    s
}
