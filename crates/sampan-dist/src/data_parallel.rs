//! A network that several processes train on data of their own.

use crate::group::{Group, tensors};
use crate::reducer::{Buckets, Reducer};
use sampan_core::{DType, Result, Tensor};
use sampan_nn::{Base, Layer, Members, Path, Visitor};

impl Group {
    /// Gives tensors of `src` to all, in place: many small ones at once.
    pub fn broadcast_all(&self, all: &[Tensor], src: usize) -> Result<()> {
        if self.size() == 1 {
            return Ok(());
        }
        let mut dtypes: Vec<DType> = all.iter().map(Tensor::dtype).collect();
        dtypes.sort_by_key(|d| *d as u8);
        dtypes.dedup();
        for dtype in dtypes {
            let part: Vec<Tensor> = all.iter().filter(|t| t.dtype() == dtype).cloned().collect();
            let joined = tensors::join(&part)?;
            let flat = Tensor::from_bytes(joined.bytes(), dtype, [part.iter().map(Tensor::numel).sum()])?;
            self.broadcast(&flat, src)?;
            if self.ranks()[self.rank().unwrap_or(0)] != src {
                tensors::with_bytes(&flat, |bytes| tensors::spread(bytes, &part))?;
            }
        }
        Ok(())
    }
}

/// A network that several processes train, each on data of its own: they begin with the parameters and buffers of the
/// first one, and in `backward` every gradient becomes the mean over all. Its members have the names of the network inside.
///
/// All processes must run the same walks backwards, with the same parameters taking part, unless `find_unused` is set.
pub struct DataParallel<L> {
    layer: L,
    reducer: Reducer,
}

impl<L: Layer> DataParallel<L> {
    /// Lets a group train a network.
    pub fn new(layer: L, group: &Group, buckets: Buckets) -> Result<DataParallel<L>> {
        let parameters = layer.named_parameters();
        let mut all: Vec<Tensor> = parameters.iter().map(|(_, p)| p.tensor()).collect();
        all.extend(layer.named_buffers().iter().map(|(_, b)| b.tensor()));
        group.broadcast_all(&all, group.ranks()[0]).map_err(|e| e.in_op("DataParallel"))?;
        let reducer = Reducer::new(group, &parameters, buckets);
        Ok(DataParallel { layer, reducer })
    }

    /// Runs `f` with gradients that stay each process's own; the next reduction takes them along.
    pub fn no_sync<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.reducer.set_active(false);
        let result = f();
        self.reducer.set_active(before);
        result
    }

    /// The network inside.
    pub fn inner(&self) -> &L {
        &self.layer
    }
}

impl<L: Layer> Members for DataParallel<L> {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.layer.visit(path, visitor);
    }
    fn base(&self) -> Option<&Base> {
        self.layer.base()
    }
}

impl<L: Layer> Layer for DataParallel<L> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.reducer.prepare();
        self.layer.forward(x)
    }
}
