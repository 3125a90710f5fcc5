//! Layers applied one after the other.

use crate::{Base, Layer, Members, Path, Visitor};
use sampan_core::{Error, Result, Tensor};
use std::any::Any;
use std::ops::{Bound, Index, RangeBounds};
use std::sync::Arc;

/// What containers of layers hold: a shared layer of any type.
pub type AnyLayer = Arc<dyn Layer>;

/// Shares a layer, without a second wrapper around one that is shared already.
pub(crate) fn shared(layer: impl Layer) -> AnyLayer {
    match (&layer as &dyn Any).downcast_ref::<AnyLayer>() {
        Some(already) => already.clone(),
        None => Arc::new(layer),
    }
}

pub(super) fn as_type<L: Layer>(layer: &AnyLayer) -> Option<&L> {
    let any = &**layer as &dyn Any;
    any.downcast_ref().or_else(|| any.downcast_ref::<Arc<L>>().map(|shared| &**shared))
}

/// A position that may count from the end, where `len` itself is one if `end` says so.
pub(super) fn position(index: i64, len: usize, end: bool) -> Result<usize> {
    let n = len as i64;
    let at = if index < 0 { index + n } else { index };
    if !(0..n + i64::from(end)).contains(&at) {
        let last = if end { ']' } else { ')' };
        return Err(Error::range(format!("index {index} is out of range [-{n}, {n}{last}")));
    }
    Ok(at as usize)
}

/// Layers applied one after the other.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_nn::{Layer, Linear, Members, ReLU, Sequential};
/// let mut net = Sequential::new().push(Linear::new(3, 4)).push_named("act", ReLU::new());
/// net.insert(-1, Linear::new(4, 5))?;
/// assert_eq!(net.call(&Tensor::new([[1.0f32, 2.0, 3.0]]))?.shape(), [1, 5]);
/// assert_eq!(net.get::<Linear>(1).unwrap().weight.shape(), [4, 5]);
/// assert_eq!(net.names(), ["0", "1", "act"]);
/// assert_eq!(net.slice(..2).len(), 2);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Sequential {
    base: Base,
    /// A layer without a name of its own is called by its position.
    layers: Vec<(Option<String>, AnyLayer)>,
}

impl Default for Sequential {
    fn default() -> Sequential {
        Sequential::new()
    }
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential { base: Base::new("sequential"), layers: Vec::new() }
    }

    /// With a layer at the end; its name is its position.
    pub fn push(mut self, layer: impl Layer) -> Sequential {
        self.append(layer);
        self
    }

    /// With a layer at the end under a name. A layer that has the name already gives way.
    pub fn push_named(mut self, name: impl Into<String>, layer: impl Layer) -> Sequential {
        self.set(&name.into(), layer);
        self
    }

    /// Adds a layer at the end; its name is its position.
    pub fn append(&mut self, layer: impl Layer) -> &mut Sequential {
        self.layers.push((None, shared(layer)));
        self
    }

    /// Adds layers at the end.
    pub fn extend<L: Layer>(&mut self, layers: impl IntoIterator<Item = L>) -> &mut Sequential {
        self.layers.extend(layers.into_iter().map(|l| (None, shared(l))));
        self
    }

    /// Puts a layer before the one at `index`, which may count from the end.
    pub fn insert(&mut self, index: i64, layer: impl Layer) -> Result<&mut Sequential> {
        let at = position(index, self.len(), true)?;
        self.layers.insert(at, (None, shared(layer)));
        Ok(self)
    }

    /// Replaces the layer of that name, or adds one.
    pub fn set(&mut self, name: &str, layer: impl Layer) {
        match self.place(name) {
            Some(i) => self.layers[i].1 = shared(layer),
            None => self.layers.push((Some(name.into()), shared(layer))),
        }
    }

    /// Takes out the layer at `index`, which may count from the end.
    pub fn remove(&mut self, index: i64) -> Result<AnyLayer> {
        let at = position(index, self.len(), false)?;
        Ok(self.layers.remove(at).1)
    }

    /// The layer at `index`, if there is one and it is an `L`.
    pub fn get<L: Layer>(&self, index: i64) -> Option<&L> {
        position(index, self.len(), false).ok().and_then(|i| as_type(&self.layers[i].1))
    }

    /// Some of the layers, shared, as a network of their own.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Sequential {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        let mut part = Sequential::new();
        part.extend(self.layers.get(clamp(range, self.len())).unwrap_or_default().iter().map(|(_, l)| l.clone()));
        part
    }

    /// The names of the layers, in order.
    pub fn names(&self) -> Vec<String> {
        (0..self.len()).map(|i| self.name(i)).collect()
    }

    /// The layers, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &AnyLayer> {
        self.layers.iter().map(|(_, layer)| layer)
    }

    /// Number of layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Is there no layer?
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    fn name(&self, i: usize) -> String {
        self.layers[i].0.clone().unwrap_or_else(|| i.to_string())
    }

    fn place(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|&i| self.name(i) == name)
    }
}

fn clamp(range: (Bound<usize>, Bound<usize>), len: usize) -> (Bound<usize>, Bound<usize>) {
    let end = match range.1 {
        Bound::Included(i) => Bound::Excluded(i.saturating_add(1).min(len)),
        Bound::Excluded(i) => Bound::Excluded(i.min(len)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (range.0, end)
}

impl Index<usize> for Sequential {
    type Output = dyn Layer;
    fn index(&self, i: usize) -> &dyn Layer {
        &*self.layers[i].1
    }
}
impl Index<&str> for Sequential {
    type Output = dyn Layer;
    fn index(&self, name: &str) -> &dyn Layer {
        let found =
            self.place(name).unwrap_or_else(|| panic!("no layer is called {name:?}, there are {:?}", self.names()));
        &*self.layers[found].1
    }
}
impl<'a> IntoIterator for &'a Sequential {
    type Item = &'a AnyLayer;
    type IntoIter = std::vec::IntoIter<&'a AnyLayer>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}
impl<L: Layer> FromIterator<L> for Sequential {
    fn from_iter<I: IntoIterator<Item = L>>(layers: I) -> Sequential {
        let mut net = Sequential::new();
        net.extend(layers);
        net
    }
}

impl Members for Sequential {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.layer(path, crate::LayerRef { type_name: "Sequential", layer: self });
        self.base.visit(path, visitor);
        self.layers.iter().enumerate().for_each(|(i, (_, l))| l.visit(&path.join(&self.name(i)), visitor));
    }
    fn base(&self) -> Option<&Base> {
        Some(&self.base)
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.iter().try_fold(x.clone(), |x, layer| layer.call(&x))
    }
    /// What one layer puts out, several tensors too, goes into the next.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.iter().try_fold(inputs.to_vec(), |x, layer| layer.call_all(&x))
    }
}

/// [`Sequential`] from layers of any types: `sequential![Linear::new(3, 4), ReLU::new()]`, or with names
/// `sequential!["fc" => Linear::new(3, 4), "act" => ReLU::new()]`.
#[macro_export]
macro_rules! sequential {
    ($($name:expr => $layer:expr),+ $(,)?) => { $crate::Sequential::new()$(.push_named($name, $layer))+ };
    ($($layer:expr),* $(,)?) => { $crate::Sequential::new()$(.push($layer))* };
}
