//! Collectives on tensors.

use super::tensors::{change_bytes, check, check_alike, join, spread, with_bytes};
use super::{Group, On};
use crate::backend::{Action, Arithmetic, Call, ReduceOp};
use crate::lane::{Job, Task};
use sampan_core::{Error, Result, Tensor, ensure};
use sampan_kernels::Buffer;

/// Two forms of each call: one that waits and one that gives a task.
macro_rules! calls {
    ($($(#[doc = $doc:tt])* $name:ident, $later:ident = $plan:ident ($($arg:ident: $type:ty),*);)*) => {
        impl Group {$(
            $(#[doc = $doc])*
            pub fn $name(&self, $($arg: $type),*) -> Result<()> {
                let (on, job) = self.$plan($($arg),*).map_err(|e| e.in_op(stringify!($name)))?;
                self.run(on, job)
            }
            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") that does not wait.")]
            pub fn $later(&self, $($arg: $type),*) -> Task {
                match self.$plan($($arg),*) {
                    Ok((on, job)) => self.start(on, job),
                    Err(e) => Task::done(Err(e.in_op(stringify!($name)))),
                }
            }
        )*}
    };
}

calls! {
    /// Makes a tensor the reduction of those of all, in place.
    all_reduce, all_reduce_async = plan_all_reduce(tensor: &Tensor, op: ReduceOp);
    /// Makes the tensor of `dst` the reduction of those of all, in place; the others keep theirs.
    reduce, reduce_async = plan_reduce(tensor: &Tensor, dst: usize, op: ReduceOp);
    /// Gives the tensor of `src` to all, in place.
    broadcast, broadcast_async = plan_broadcast(tensor: &Tensor, src: usize);
    /// Fills one tensor for each process with that process's tensor.
    all_gather_into, all_gather_into_async = plan_all_gather(outputs: &[Tensor], tensor: &Tensor);
    /// The same at `dst` alone; the others give no outputs.
    gather_into, gather_into_async = plan_gather(outputs: &[Tensor], tensor: &Tensor, dst: usize);
    /// Fills a tensor with one of the tensors that `src` gives, one for each process; the others give none.
    scatter, scatter_async = plan_scatter(tensor: &Tensor, inputs: &[Tensor], src: usize);
    /// Fills a tensor with the reduction of one of the tensors that all give, one for each process.
    reduce_scatter, reduce_scatter_async = plan_reduce_scatter(tensor: &Tensor, inputs: &[Tensor], op: ReduceOp);
    /// Gives each process one of the inputs, and fills each of the outputs with what one process gives. They may differ in
    /// length from process to process.
    all_to_all, all_to_all_async = plan_all_to_all(outputs: &[Tensor], inputs: &[Tensor]);
    /// Gives a tensor to `dst`.
    send, send_async = plan_send(tensor: &Tensor, dst: usize);
    /// Fills a tensor with the one that `src` sends.
    recv, recv_async = plan_recv(tensor: &Tensor, src: usize);
    /// Waits for all.
    barrier, barrier_async = plan_barrier();
}

type Planned = Result<(On, Job)>;

fn collective(job: impl FnOnce() -> Result<()> + Send + 'static) -> Planned {
    Ok((On::Collectives, Box::new(job)))
}

/// Nothing to do.
fn nothing() -> Planned {
    collective(|| Ok(()))
}

impl Group {
    /// The tensors of all, in the order of their ranks.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        let outputs: Vec<Tensor> = (0..self.size()).map(|_| tensor.detach().zeros_like()).collect();
        self.all_gather_into(&outputs, tensor)?;
        Ok(outputs)
    }

    fn plan_barrier(&self) -> Planned {
        self.member("barrier")?;
        let Some(engine) = self.0.engine.clone() else { return nothing() };
        collective(move || engine.barrier())
    }

    fn plan_all_reduce(&self, tensor: &Tensor, op: ReduceOp) -> Planned {
        self.member("all_reduce")?;
        check(tensor)?;
        Arithmetic::new(tensor.dtype(), op)?;
        let Some(engine) = self.0.engine.clone() else { return nothing() };
        let call = Call::new(Action::AllReduce, tensor.dtype(), tensor.numel()).op(op);
        let t = tensor.clone();
        collective(move || change_bytes(&t, |bytes| engine.all_reduce(&call, bytes)))
    }

    fn plan_reduce(&self, tensor: &Tensor, dst: usize, op: ReduceOp) -> Planned {
        let me = self.member("reduce")?;
        check(tensor)?;
        Arithmetic::new(tensor.dtype(), op)?;
        let root = self.rank_of(dst)?;
        let Some(engine) = self.0.engine.clone() else { return nothing() };
        let call = Call::new(Action::Reduce, tensor.dtype(), tensor.numel()).op(op).root(root);
        let t = tensor.clone();
        collective(move || match me == root {
            true => change_bytes(&t, |bytes| engine.reduce(&call, bytes)),
            // Its values are only read, from a copy that may be held for writing.
            false => {
                let mut own = join(std::slice::from_ref(&t))?;
                engine.reduce(&call, own.bytes_mut())
            }
        })
    }

    fn plan_broadcast(&self, tensor: &Tensor, src: usize) -> Planned {
        self.member("broadcast")?;
        check(tensor)?;
        let root = self.rank_of(src)?;
        let Some(engine) = self.0.engine.clone() else { return nothing() };
        let call = Call::new(Action::Broadcast, tensor.dtype(), tensor.numel()).root(root);
        let t = tensor.clone();
        collective(move || change_bytes(&t, |bytes| engine.broadcast(&call, bytes)))
    }

    fn plan_all_gather(&self, outputs: &[Tensor], tensor: &Tensor) -> Planned {
        self.member("all_gather")?;
        check(tensor)?;
        check_alike(outputs, tensor, self.size(), "tensor_list")?;
        let (outputs, t) = (outputs.to_vec(), tensor.clone());
        let engine = self.0.engine.clone();
        let call = Call::new(Action::AllGather, t.dtype(), t.numel());
        collective(move || {
            let mut all = Buffer::try_uninit(outputs.len() * t.numel() * t.dtype().size())?;
            with_bytes(&t, |mine| match &engine {
                Some(engine) => engine.all_gather(&call, mine, all.bytes_mut()),
                None => {
                    all.bytes_mut().copy_from_slice(mine);
                    Ok(())
                }
            })?;
            spread(all.bytes(), &outputs)
        })
    }

    fn plan_gather(&self, outputs: &[Tensor], tensor: &Tensor, dst: usize) -> Planned {
        let me = self.member("gather")?;
        check(tensor)?;
        let root = self.rank_of(dst)?;
        let wanted = if me == root { self.size() } else { 0 };
        // Who gives outputs and is not the root gets nothing into them, as in Paddle.
        let outputs = if me == root { outputs.to_vec() } else { Vec::new() };
        check_alike(&outputs, tensor, wanted, "gather_list")?;
        let (t, engine) = (tensor.clone(), self.0.engine.clone());
        let call = Call::new(Action::Gather, t.dtype(), t.numel()).root(root);
        collective(move || {
            let mut all = Buffer::try_uninit(outputs.len() * t.numel() * t.dtype().size())?;
            with_bytes(&t, |mine| match &engine {
                Some(engine) => engine.gather(&call, mine, all.bytes_mut()),
                None => {
                    all.bytes_mut().copy_from_slice(mine);
                    Ok(())
                }
            })?;
            spread(all.bytes(), &outputs)
        })
    }

    fn plan_scatter(&self, tensor: &Tensor, inputs: &[Tensor], src: usize) -> Planned {
        let me = self.member("scatter")?;
        check(tensor)?;
        let root = self.rank_of(src)?;
        let inputs = if me == root { inputs.to_vec() } else { Vec::new() };
        check_alike(&inputs, tensor, if me == root { self.size() } else { 0 }, "tensor_list")?;
        let (t, engine) = (tensor.clone(), self.0.engine.clone());
        let call = Call::new(Action::Scatter, t.dtype(), t.numel()).root(root);
        collective(move || {
            let all = join(&inputs)?;
            change_bytes(&t, |mine| match &engine {
                Some(engine) => engine.scatter(&call, all.bytes(), mine),
                None => {
                    mine.copy_from_slice(all.bytes());
                    Ok(())
                }
            })
        })
    }

    fn plan_reduce_scatter(&self, tensor: &Tensor, inputs: &[Tensor], op: ReduceOp) -> Planned {
        self.member("reduce_scatter")?;
        check(tensor)?;
        Arithmetic::new(tensor.dtype(), op)?;
        check_alike(inputs, tensor, self.size(), "tensor_list")?;
        let (t, inputs, engine) = (tensor.clone(), inputs.to_vec(), self.0.engine.clone());
        let call = Call::new(Action::ReduceScatter, t.dtype(), t.numel()).op(op);
        collective(move || {
            let all = join(&inputs)?;
            change_bytes(&t, |mine| match &engine {
                Some(engine) => engine.reduce_scatter(&call, all.bytes(), mine),
                None => {
                    mine.copy_from_slice(all.bytes());
                    Ok(())
                }
            })
        })
    }

    fn plan_all_to_all(&self, outputs: &[Tensor], inputs: &[Tensor]) -> Planned {
        let me = self.member("alltoall")?;
        let size = self.size();
        ensure!(inputs.len() == size, "in_tensor_list has {} tensors for {size} processes", inputs.len());
        ensure!(outputs.len() == size, "out_tensor_list has {} tensors for {size} processes", outputs.len());
        let dtype = inputs[0].dtype();
        for t in inputs.iter().chain(outputs) {
            check(t)?;
            ensure!(t.dtype() == dtype, "the tensors are of {dtype} and of {}; all must be alike", t.dtype());
        }
        let (own, place) = (inputs[me].numel(), outputs[me].numel());
        ensure!(own == place, "the part for this process has {own} elements, the place for it {place}");
        let (inputs, outputs, engine) = (inputs.to_vec(), outputs.to_vec(), self.0.engine.clone());
        collective(move || {
            let lens = |tensors: &[Tensor]| tensors.iter().map(|t| t.numel() * dtype.size()).collect::<Vec<_>>();
            let given = join(&inputs)?;
            let Some(engine) = engine else { return spread(given.bytes(), &outputs) };
            let mut taken = Buffer::try_uninit(lens(&outputs).iter().sum())?;
            let (mut give, mut rest) = (Vec::new(), given.bytes());
            for len in lens(&inputs) {
                let (part, later) = rest.split_at(len);
                give.push(part);
                rest = later;
            }
            let (mut take, mut rest) = (Vec::new(), taken.bytes_mut());
            for len in lens(&outputs) {
                let (part, later) = rest.split_at_mut(len);
                take.push(part);
                rest = later;
            }
            engine.all_to_all(&Call::new(Action::AllToAll, dtype, 0), &give, &mut take)?;
            spread(taken.bytes(), &outputs)
        })
    }

    fn partner(&self, op: &str, rank: usize) -> Result<(usize, std::sync::Arc<dyn crate::Backend>)> {
        let me = self.member(op)?;
        let peer = self.rank_of(rank)?;
        match &self.0.engine {
            Some(engine) if peer != me => Ok((peer, engine.clone())),
            _ => Err(Error::invalid(format!("rank {rank} is this process itself"))),
        }
    }

    fn plan_send(&self, tensor: &Tensor, dst: usize) -> Planned {
        check(tensor)?;
        let (peer, engine) = self.partner("send", dst)?;
        let t = tensor.clone();
        let call = Call::new(Action::Send, t.dtype(), t.numel());
        let job = move || with_bytes(&t, |bytes| engine.send(&call, peer, bytes));
        Ok((On::Messages(peer, true), Box::new(job)))
    }

    fn plan_recv(&self, tensor: &Tensor, src: usize) -> Planned {
        check(tensor)?;
        let (peer, engine) = self.partner("recv", src)?;
        let t = tensor.clone();
        let call = Call::new(Action::Send, t.dtype(), t.numel());
        let job = move || change_bytes(&t, |bytes| engine.recv(&call, peer, bytes));
        Ok((On::Messages(peer, false), Box::new(job)))
    }
}
