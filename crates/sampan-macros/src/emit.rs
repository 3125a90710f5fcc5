//! Writes the registry entry and the typed functions.

use crate::parse::{OpFn, Param, Presence};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Expr, Ident, LitStr, Type};

/// A parameter's type as tokens without spaces, the key of the tables below.
fn key(ty: &Type) -> String {
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
        "&[i64]" | "Axes" => "Ints",
        "&[f64]" => "Floats",
        "Scalar" => "Scalar",
        "&Value" => "Any",
        _ => {
            let message = format!("#[op] does not know the parameter type `{text}`");
            return quote!(compile_error!(#message));
        }
    };
    let kind = format_ident!("{kind}");
    quote!(kind: crate::op::Kind::#kind, optional: #optional)
}

/// The type a Rust caller passes, and how it becomes a `Value`.
fn public(p: &Param) -> (TokenStream, TokenStream) {
    let name = &p.name;
    let ty = &p.ty;
    match key(ty).as_str() {
        "&Tensor" => (quote!(&crate::Tensor), quote!(crate::Value::Tensor(#name.clone()))),
        "&[Tensor]" => (quote!(&[crate::Tensor]), quote!(crate::Value::Tensors(#name.to_vec()))),
        "&str" => (quote!(&str), quote!(crate::Value::Str(#name.into()))),
        "Operand" => (quote!(impl Into<crate::Operand>), quote!(crate::Value::from(#name.into()))),
        "Scalar" => (quote!(impl Into<crate::Scalar>), quote!(crate::Value::from(#name.into()))),
        "Axes" => (quote!(impl Into<crate::Axes>), quote!(crate::Value::from(#name.into()))),
        "&[i64]" => (quote!(impl Into<crate::Ints>), quote!(crate::Value::from(#name.into()))),
        "&[f64]" => (quote!(impl AsRef<[f64]>), quote!(crate::Value::Floats(#name.as_ref().to_vec()))),
        "&Value" => (quote!(impl Into<crate::Value>), quote!(#name.into())),
        // A number of any type, or `None`.
        "Option<Scalar>" => (quote!(impl Into<crate::Value>), quote!(#name.into())),
        "Option<i64>" | "Option<f64>" | "Option<bool>" | "Option<DType>" => {
            (quote!(impl Into<#ty>), quote!(crate::Value::optional(#name.into())))
        }
        "Option<&Tensor>" => (quote!(Option<&crate::Tensor>), quote!(crate::Value::optional(#name.cloned()))),
        "Option<Operand>" => (quote!(impl Into<crate::Value>), quote!(#name.into())),
        "Option<&str>" => (quote!(Option<&str>), quote!(crate::Value::optional(#name))),
        "Option<&[i64]>" => (quote!(Option<&[i64]>), quote!(crate::Value::optional(#name))),
        "Option<&[f64]>" => (quote!(Option<&[f64]>), quote!(crate::Value::optional(#name))),
        _ => (quote!(#ty), quote!(crate::Value::from(#name))),
    }
}

/// The setter of an options struct: like `public`, but an optional argument is given bare.
fn setter(p: &Param) -> (TokenStream, TokenStream) {
    let name = &p.name;
    match key(&p.ty).as_str() {
        "Option<&Tensor>" => (quote!(&crate::Tensor), quote!(crate::Value::Tensor(#name.clone()))),
        "Option<&str>" => (quote!(&str), quote!(crate::Value::Str(#name.into()))),
        "Option<&[i64]>" => (quote!(impl Into<crate::Ints>), quote!(crate::Value::from(#name.into()))),
        "Option<Scalar>" => (quote!(impl Into<crate::Scalar>), quote!(crate::Value::from(#name.into()))),
        _ => public(p),
    }
}

fn default_value(default: &Expr) -> TokenStream {
    if quote!(#default).to_string() == "None" {
        quote!(crate::Value::None)
    } else {
        quote!(crate::Value::from(#default))
    }
}

fn doc_text(attrs: &[Attribute]) -> String {
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

    let entry = registry_entry(op, &text, &doc, &body_name, &static_name);
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
        quote!(<#ty as crate::value::Arg>::get(&cx.args()[#i], #n)?)
    });
    let cx = with_cx.then(|| quote!(cx,));
    quote! {
        |cx: &crate::dispatch::Cx| -> crate::Result<crate::op::Outputs> {
            Ok(crate::op::OutputSet::into_outputs(#target(#cx #(#gets),*)?))
        }
    }
}

fn registry_entry(op: &OpFn, text: &str, doc: &str, body: &Ident, static_name: &Ident) -> TokenStream {
    let a = &op.attr;
    let params = op.params.iter().map(|p| {
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
        quote!(crate::op::Param { name: #n, #kind, default: #default, default_repr: #repr })
    });
    let aliases = a.alias.iter().map(|(from, to)| {
        let (from, to) = (from.to_string(), to.to_string());
        quote!((#from, #to))
    });
    let also = &a.also;
    let module = a.module.as_ref().map(|m| m.value()).unwrap_or_default();
    let option = |o: &Option<LitStr>| o.as_ref().map_or(quote!(None), |s| quote!(Some(#s)));
    let (onnx, peer) = (option(&a.onnx), option(&a.peer));
    let amp = match a.amp.as_ref().map(|s| s.value()).as_deref() {
        Some("white") => quote!(crate::op::Amp::White),
        Some("black") => quote!(crate::op::Amp::Black),
        _ => quote!(crate::op::Amp::Follow),
    };
    let samples = a.samples.as_ref().map_or(quote!(None), |p| quote!(Some(#p)));
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
    let (primitive, non_diff, inplace) = (op.primitive, a.non_diff, a.inplace || text.ends_with('_'));
    quote! {
        #[doc(hidden)]
        pub static #static_name: crate::op::OpDef = crate::op::OpDef {
            name: #text,
            module: #module,
            file: file!(),
            doc: #doc,
            params: &[#(#params),*],
            aliases: &[#(#aliases),*],
            also: &[#(#also),*],
            returns: <#ret as crate::op::ReturnType>::RETURNS,
            primitive: #primitive,
            non_diff: #non_diff,
            inplace: #inplace,
            amp: #amp,
            onnx: #onnx,
            peer: #peer,
            tol: #tol,
            run: #run,
            reference: #reference,
            samples: #samples,
        };
        inventory::submit!(crate::op::Entry(&#static_name));
    }
}

fn typed_api(op: &OpFn, name: &Ident, static_name: &Ident, docs: &[Attribute]) -> TokenStream {
    let text = name.to_string();
    let plain = text.strip_prefix("r#").unwrap_or(&text).to_string();
    let ret = match &op.item.sig.output {
        syn::ReturnType::Type(_, ty) => quote!(<#ty as crate::op::ReturnType>::Value),
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
                return quote!(crate::Value::Tensor(self.clone()));
            }
            if p.presence == Presence::Opt {
                let n = &p.name;
                return quote!(opts.#n);
            }
            public(p).1
        })
        .collect();

    if plain.ends_with('_') {
        return inplace_only_api(name, static_name, docs, &sig, &names, &args);
    }
    let try_name = format_ident!("try_{plain}");
    let dispatch = quote!(
        crate::dispatch::dispatch(&#static_name, smallvec::smallvec![#(#args),*])
            .map(<#ret as crate::op::OutputSet>::from_outputs)
    );
    let try_doc = format!("Like [`{plain}`](Self::{plain}), returning the error instead of panicking.");
    let try_doc = if method { try_doc } else { try_doc.replace("Self::", "") };

    let mut extra = TokenStream::new();
    let functions = if opts.is_empty() {
        quote! {
            #(#docs)*
            #[track_caller]
            pub fn #name(#receiver #(#sig),*) -> #ret {
                crate::error::unwrap(#this #try_name(#(#names),*))
            }
            #[doc = #try_doc]
            #[track_caller]
            pub fn #try_name(#receiver #(#sig),*) -> crate::Result<#ret> {
                #dispatch
            }
        }
    } else {
        let struct_name = format_ident!("{}", camel(&plain));
        extra = options_struct(&struct_name, &plain, &opts);
        let with = format_ident!("{plain}_with");
        let try_with = format_ident!("try_{plain}_with");
        let with_doc = format!("[`{plain}`](Self::{plain}) with the optional arguments of [`{}`].", camel(&plain));
        let with_doc = if method { with_doc } else { with_doc.replace("Self::", "") };
        quote! {
            #(#docs)*
            #[track_caller]
            pub fn #name(#receiver #(#sig),*) -> <#ret as crate::op::OutputSet>::Plain {
                crate::error::unwrap(#this #try_name(#(#names),*))
            }
            #[doc = #try_doc]
            #[track_caller]
            pub fn #try_name(#receiver #(#sig),*) -> crate::Result<<#ret as crate::op::OutputSet>::Plain> {
                #this #try_with(#(#names,)* Default::default()).map(crate::op::OutputSet::plain)
            }
            #[doc = #with_doc]
            #[track_caller]
            pub fn #with(#receiver #(#sig,)* opts: #struct_name) -> #ret {
                crate::error::unwrap(#this #try_with(#(#names,)* opts))
            }
            #[doc = #with_doc]
            #[track_caller]
            pub fn #try_with(#receiver #(#sig,)* opts: #struct_name) -> crate::Result<#ret> {
                #dispatch
            }
        }
    };
    let inplace = if op.attr.inplace && method { inplace_api(&plain, &sig, &names) } else { quote!() };
    if method {
        quote! { #extra impl crate::Tensor { #functions #inplace } }
    } else {
        quote! { #extra #functions }
    }
}

fn inplace_api(plain: &str, sig: &[TokenStream], names: &[&Ident]) -> TokenStream {
    let (name, try_name) = (format_ident!("{plain}_"), format_ident!("try_{plain}_"));
    let out = format_ident!("try_{plain}");
    let doc = format!("[`{plain}`](Self::{plain}) that writes its result into this tensor's memory.");
    quote! {
        #[doc = #doc]
        #[track_caller]
        pub fn #name(&mut self, #(#sig),*) -> &mut Self {
            crate::error::unwrap(self.#try_name(#(#names),*));
            self
        }
        #[doc = #doc]
        #[track_caller]
        pub fn #try_name(&mut self, #(#sig),*) -> crate::Result<()> {
            let out = self.#out(#(#names),*)?;
            self.take_inplace(out, concat!(#plain, "_"))
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
        impl crate::Tensor {
            #(#docs)*
            #[track_caller]
            pub fn #name(&mut self, #(#sig),*) -> &mut Self {
                crate::error::unwrap(self.#try_name(#(#names),*));
                self
            }
            #[doc = #try_doc]
            #[track_caller]
            pub fn #try_name(&mut self, #(#sig),*) -> crate::Result<()> {
                *self = crate::dispatch::dispatch_inplace(&#static_name, smallvec::smallvec![#(#args),*])?;
                Ok(())
            }
        }
    }
}

fn options_struct(struct_name: &Ident, plain: &str, opts: &[&Param]) -> TokenStream {
    let fields: Vec<&Ident> = opts.iter().map(|p| &p.name).collect();
    let defaults = opts.iter().map(|p| default_value(p.default.as_ref().expect("#[opt] always has a value")));
    let setters = opts.iter().map(|p| {
        let n = &p.name;
        let (ty, value) = setter(p);
        let doc = format!("Sets `{n}`.");
        quote! {
            #[doc = #doc]
            pub fn #n(mut self, #n: #ty) -> Self {
                self.#n = #value;
                self
            }
        }
    });
    let doc = format!("The optional arguments of `{plain}`, with their defaults.");
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        pub struct #struct_name { #(#fields: crate::Value),* }
        impl Default for #struct_name {
            fn default() -> Self {
                #struct_name { #(#fields: #defaults),* }
            }
        }
        impl #struct_name {
            /// All defaults.
            pub fn new() -> Self {
                Self::default()
            }
            #(#setters)*
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
