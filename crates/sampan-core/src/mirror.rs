//! The memory of a GPU tensor: a block on the device, and a copy on the host where one was needed.
//!
//! Kernels of the GPU work on the block, everything else on the copy, and each is brought up to date when it is asked for. An op
//! without a kernel of its own therefore runs on the CPU with nothing to change in it.

use crate::{Error, Result};
use sampan_cuda::{Block, Fault};
use sampan_kernels::Buffer;
use std::sync::Arc;

/// Where the values are.
#[derive(Clone, Copy, PartialEq)]
enum Fresh {
    /// Nowhere: they are not specified.
    Nowhere,
    Host,
    Device,
    Both,
}

pub(crate) struct Mirror {
    len: usize,
    fresh: Fresh,
    host: Buffer,
    block: Option<Arc<Block>>,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let kind = match fault {
            Fault::Missing(_) | Fault::OutOfMemory { .. } => crate::error::Kind::Unavailable,
            Fault::Recording { .. } => crate::error::Kind::PreconditionNotMet,
            Fault::Call { .. } => crate::error::Kind::External,
            Fault::Index { .. } => crate::error::Kind::OutOfRange,
        };
        let error = Error::new(kind, fault.to_string());
        match fault {
            Fault::OutOfMemory { .. } => error.hint("use a smaller batch, or free tensors that are not needed"),
            _ => error,
        }
    }
}

impl Mirror {
    /// Values unspecified.
    pub(crate) fn new(len: usize) -> Mirror {
        Mirror { len, fresh: Fresh::Nowhere, host: Buffer::uninit(0), block: None }
    }

    /// Values that the host has.
    pub(crate) fn of_host(host: Buffer) -> Mirror {
        Mirror { len: host.len(), fresh: Fresh::Host, host, block: None }
    }

    /// Values that lie on the device.
    pub(crate) fn of_block(block: Block) -> Mirror {
        let (len, host) = (block.len(), Buffer::uninit(0));
        Mirror { len, fresh: Fresh::Device, host, block: Some(Arc::new(block)) }
    }

    /// Others may have written on the device.
    pub(crate) fn distrust_host(&mut self) {
        if self.fresh == Fresh::Both {
            self.fresh = Fresh::Device;
        }
    }

    /// All bytes zero.
    pub(crate) fn zeros(number: u8, len: usize) -> Result<Mirror> {
        let mut mirror = Mirror::new(len);
        let block = mirror.for_device(number)?;
        block.device().zero(&block)?;
        Ok(mirror)
    }

    /// Does the host lack the values?
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self.fresh, Fresh::Device | Fresh::Nowhere)
    }

    /// Does the host alone have the values?
    pub(crate) fn is_on_host(&self) -> bool {
        self.fresh == Fresh::Host
    }

    pub(crate) fn host(&self) -> &Buffer {
        &self.host
    }

    /// Brings the host's copy up to date.
    pub(crate) fn fetch(&mut self) {
        if self.host.len() != self.len {
            self.host = crate::error::unwrap(Buffer::try_uninit(self.len).map_err(Error::from));
        }
        match (self.fresh, &self.block) {
            (Fresh::Device, Some(block)) => {
                let done = block.device().download(block, self.host.bytes_mut());
                crate::error::unwrap(done.map_err(Error::from));
                self.fresh = Fresh::Both;
            }
            (Fresh::Nowhere, _) => self.fresh = Fresh::Host,
            _ => {}
        }
    }

    /// The host's copy, which will be written.
    pub(crate) fn for_host(&mut self) -> &mut Buffer {
        self.fetch();
        self.fresh = Fresh::Host;
        &mut self.host
    }

    /// The block with the values as they are.
    pub(crate) fn on_device(&mut self, number: u8) -> Result<Arc<Block>> {
        let block = self.block(number)?;
        if self.fresh == Fresh::Host {
            crate::gpu::send(block.device(), self.host.bytes(), &block)?;
            self.fresh = Fresh::Both;
        }
        Ok(block)
    }

    /// The block, whose values will be written.
    pub(crate) fn for_device(&mut self, number: u8) -> Result<Arc<Block>> {
        self.fresh = Fresh::Device;
        self.block(number)
    }

    fn block(&mut self, number: u8) -> Result<Arc<Block>> {
        if let Some(block) = &self.block {
            return Ok(block.clone());
        }
        let block = Arc::new(sampan_cuda::device(number as usize)?.alloc(self.len)?);
        self.block = Some(block.clone());
        Ok(block)
    }
}
