//! Lists and maps of layers and of parameters, for a layer that walks through them itself.

use super::sequential::{AnyLayer, as_type, position, shared};
use crate::{Base, Layer, Members, Parameter, Path, Visitor};
use sampan_core::{Error, Result, Tensor};
use std::ops::Index;

/// A container that its owner's `forward` walks through: it has members, and no `forward` of its own.
macro_rules! holder {
    ($name:ident, $items:ident, |$self:ident| $pairs:expr) => {
        impl Members for $name {
            fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
                visitor.layer(path, crate::LayerRef { type_name: stringify!($name), layer: self });
                self.base.visit(path, visitor);
                let $self = self;
                $pairs.for_each(|(name, item)| item.visit(&path.join(&name), visitor));
            }
            fn base(&self) -> Option<&Base> {
                Some(&self.base)
            }
        }
        impl Layer for $name {
            /// Always an error: what to do with the members is for the layer that owns them to say.
            fn forward(&self, _: &Tensor) -> Result<Tensor> {
                let message = concat!("a ", stringify!($name), " has no forward");
                Err(Error::invalid(message).hint("use its members in the forward of the layer that owns it"))
            }
        }
        impl Default for $name {
            fn default() -> $name {
                $name::new()
            }
        }
        impl $name {
            /// Nothing in it yet.
            pub fn new() -> $name {
                $name { base: Base::of(stringify!($name)), $items: Vec::new() }
            }
            /// Number of members.
            pub fn len(&self) -> usize {
                self.$items.len()
            }
            /// Is there no member?
            pub fn is_empty(&self) -> bool {
                self.$items.is_empty()
            }
            /// Takes all members out.
            pub fn clear(&mut self) {
                self.$items.clear();
            }
        }
    };
}

/// The list types: what they hold, and how a member given becomes one.
macro_rules! lists {
    ($($(#[doc = $doc:tt])* $name:ident of $item:ty, $given:ty, |$new:ident| $make:expr;)*) => {$(
        $(#[doc = $doc])*
        pub struct $name {
            base: Base,
            items: Vec<$item>,
        }
        holder!($name, items, |list| list.items.iter().enumerate().map(|(i, m)| (i.to_string(), m)));
        impl $name {
            /// Adds a member at the end.
            pub fn append(&mut self, $new: $given) -> &mut $name {
                self.items.push($make);
                self
            }
            /// Adds members at the end.
            pub fn extend(&mut self, members: impl IntoIterator<Item = $item>) -> &mut $name {
                self.items.extend(members);
                self
            }
            /// Puts a member before the one at `index`, which may count from the end.
            pub fn insert(&mut self, index: i64, $new: $given) -> Result<()> {
                let at = position(index, self.len(), true)?;
                self.items.insert(at, $make);
                Ok(())
            }
            /// Replaces the member at `index`, which may count from the end.
            pub fn set(&mut self, index: i64, $new: $given) -> Result<()> {
                let at = position(index, self.len(), false)?;
                self.items[at] = $make;
                Ok(())
            }
            /// Takes out the member at `index`, which may count from the end.
            pub fn pop(&mut self, index: i64) -> Result<$item> {
                let at = position(index, self.len(), false)?;
                Ok(self.items.remove(at))
            }
            /// The members, in order.
            pub fn iter(&self) -> std::slice::Iter<'_, $item> {
                self.items.iter()
            }
        }
        impl Index<usize> for $name {
            type Output = $item;
            fn index(&self, i: usize) -> &$item {
                &self.items[i]
            }
        }
        impl<'a> IntoIterator for &'a $name {
            type Item = &'a $item;
            type IntoIter = std::slice::Iter<'a, $item>;
            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }
    )*};
}

lists! {
    /// Layers by position, for a layer that walks through them itself. Layers of one type may as well be a `Vec`.
    ///
    /// ```
    /// use sampan_nn::{LayerList, Linear, Members};
    /// let heads: LayerList = (1..4).map(|n| Linear::new(2, n)).collect();
    /// assert_eq!(heads.get::<Linear>(-1).unwrap().weight.shape(), [2, 3]);
    /// assert_eq!(heads.named_parameters()[0].0, "0.weight");
    /// ```
    LayerList of AnyLayer, impl Layer, |layer| shared(layer);
    /// Parameters by position.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Members, Parameter, ParameterList};
    /// let list: ParameterList = (0..3).map(|i| Parameter::new(Tensor::new([i as f32]))).collect();
    /// assert_eq!(list[2].tensor().to_f64(), 2.0);
    /// assert_eq!(list.named_parameters()[1].0, "1");
    /// ```
    ParameterList of Parameter, Parameter, |parameter| parameter;
}

impl LayerList {
    /// The layer at `index`, if there is one and it is an `L`.
    pub fn get<L: Layer>(&self, index: i64) -> Option<&L> {
        position(index, self.len(), false).ok().and_then(|i| as_type(&self.items[i]))
    }
}
impl<L: Layer> FromIterator<L> for LayerList {
    fn from_iter<I: IntoIterator<Item = L>>(layers: I) -> LayerList {
        let mut list = LayerList::new();
        list.extend(layers.into_iter().map(shared));
        list
    }
}
impl FromIterator<Parameter> for ParameterList {
    fn from_iter<I: IntoIterator<Item = Parameter>>(parameters: I) -> ParameterList {
        let mut list = ParameterList::new();
        list.extend(parameters);
        list
    }
}

/// The map types, which keep the order in which members came.
macro_rules! maps {
    ($($(#[doc = $doc:tt])* $name:ident of $item:ty, $given:ty, |$new:ident| $make:expr;)*) => {$(
        $(#[doc = $doc])*
        pub struct $name {
            base: Base,
            items: Vec<(String, $item)>,
        }
        holder!($name, items, |map| map.items.iter().map(|(name, m)| (name.clone(), m)));
        impl $name {
            /// Adds a member under a name, in place of one that has the name already, which is given back.
            pub fn insert(&mut self, name: impl Into<String>, $new: $given) -> Option<$item> {
                let (name, new) = (name.into(), $make);
                match self.items.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, old)) => Some(std::mem::replace(old, new)),
                    None => {
                        self.items.push((name, new));
                        None
                    }
                }
            }
            /// Adds or replaces several members.
            pub fn update<N: Into<String>>(&mut self, members: impl IntoIterator<Item = (N, $item)>) {
                members.into_iter().for_each(|(name, member)| drop(self.insert(name, member)));
            }
            /// Takes the member of that name out, if there is one.
            pub fn pop(&mut self, name: &str) -> Option<$item> {
                let at = self.items.iter().position(|(n, _)| n == name)?;
                Some(self.items.remove(at).1)
            }
            /// Is there a member of that name?
            pub fn contains(&self, name: &str) -> bool {
                self.keys().any(|n| n == name)
            }
            /// The names, in the order the members came.
            pub fn keys(&self) -> impl Iterator<Item = &str> {
                self.items.iter().map(|(name, _)| name.as_str())
            }
            /// The members, in the order they came.
            pub fn values(&self) -> impl Iterator<Item = &$item> {
                self.items.iter().map(|(_, member)| member)
            }
            /// Names and members, in the order they came.
            pub fn items(&self) -> impl Iterator<Item = (&str, &$item)> {
                self.items.iter().map(|(name, member)| (name.as_str(), member))
            }
        }
        impl Index<&str> for $name {
            type Output = $item;
            fn index(&self, name: &str) -> &$item {
                let found = self.items().find(|(n, _)| *n == name).map(|(_, member)| member);
                found.unwrap_or_else(|| {
                    panic!("nothing is called {name:?}, there are {:?}", self.keys().collect::<Vec<_>>())
                })
            }
        }
    )*};
}

maps! {
    /// Layers by name.
    ///
    /// ```
    /// use sampan_nn::{Layer, LayerDict, Linear, Members, ReLU};
    /// let mut parts = LayerDict::new();
    /// parts.insert("fc", Linear::new(2, 3));
    /// parts.insert("act", ReLU::new());
    /// assert_eq!(parts.keys().collect::<Vec<_>>(), ["fc", "act"]);
    /// assert_eq!(parts.get::<Linear>("fc").unwrap().weight.shape(), [2, 3]);
    /// assert_eq!(parts.named_parameters()[0].0, "fc.weight");
    /// ```
    LayerDict of AnyLayer, impl Layer, |layer| shared(layer);
    /// Parameters by name.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Members, Parameter, ParameterDict};
    /// let mut scales = ParameterDict::new();
    /// scales.insert("a", Parameter::new(Tensor::new([1.0f32])));
    /// assert_eq!(scales["a"].tensor().to_f64(), 1.0);
    /// assert!(scales.contains("a") && scales.pop("b").is_none());
    /// ```
    ParameterDict of Parameter, Parameter, |parameter| parameter;
}

impl LayerDict {
    /// The layer of that name, if there is one and it is an `L`.
    pub fn get<L: Layer>(&self, name: &str) -> Option<&L> {
        self.items().find(|(n, _)| *n == name).and_then(|(_, layer)| as_type(layer))
    }
}
