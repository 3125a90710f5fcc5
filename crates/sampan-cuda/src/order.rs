//! In which order recorded work is done. A stream is recorded as one queue; what must wait is only who reads what another piece
//! of work writes, and who writes what another reads or writes. So work is recorded in *pieces*, each with the memory that it
//! touches, and the queue becomes a graph in which the others run side by side. Work outside of pieces, and a piece that uses an
//! address which nobody named, keeps its place between all that came before it and all that comes after.

use crate::device::Device;
use crate::driver::{Driver, Handle};
use crate::fault::{Missing, Result};
use crate::launch::Argument;
use crate::library::{functions, open};
use crate::memory::Block;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;

functions! {
    /// What of libcuda shapes recorded work, from CUDA 12.3 on.
    Shaping {
        state = "cuStreamGetCaptureInfo_v3": fn(
            Handle, *mut i32, *mut u64, *mut Handle, *mut *const Handle, *mut *const Edge, *mut usize
        );
        edges = "cuGraphGetEdges_v2": fn(Handle, *mut Handle, *mut Handle, *mut Edge, *mut usize);
        connect = "cuGraphAddDependencies_v2": fn(Handle, *const Handle, *const Handle, *const Edge, usize);
        part = "cuGraphRemoveDependencies_v2": fn(Handle, *const Handle, *const Handle, *const Edge, usize);
        kind = "cuGraphNodeGetType": fn(Handle, *mut i32);
    }
}

/// How one node waits for another: `CUgraphEdgeData`. All zero, it waits for its end.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Edge {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

impl Edge {
    /// The later kernel waits by itself, and may be brought to its places before.
    fn waits_by_itself(&self) -> bool {
        self.kind == 1
    }
}

fn shaping() -> Option<&'static Shaping> {
    static SHAPING: OnceLock<std::result::Result<Shaping, Missing>> = OnceLock::new();
    let find = || Shaping::load(open(&["libcuda.so.1", "libcuda.so"], "the NVIDIA driver", "")?);
    SHAPING.get_or_init(find).as_ref().ok()
}

/// Bytes of the device that are read or written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Touch {
    start: u64,
    end: u64,
    written: bool,
}

impl Touch {
    const ALL: Touch = Touch { start: 0, end: u64::MAX, written: true };

    /// Must one of them wait for the other?
    fn meets(&self, other: &Touch) -> bool {
        (self.written || other.written) && self.start < other.end && other.start < self.end
    }
}

/// Nodes of the queue up to `past`, and what they touch.
struct Piece {
    past: usize,
    touches: Vec<Touch>,
}

/// What is noted of the work that a thread records.
#[derive(Default)]
pub(crate) struct Order {
    pieces: Vec<Piece>,
    /// Pieces within pieces are parts of the outermost one.
    depth: usize,
    touches: Vec<Touch>,
    /// Does the piece use an address that nobody named?
    unsure: bool,
    /// The next counter of blocks that have come.
    counter: usize,
}

thread_local! {
    static ORDER: RefCell<Option<Order>> = const { RefCell::new(None) };
}

impl Order {
    /// Begins to take notes, if the driver can do something with them.
    pub fn begin() {
        ORDER.set(shaping().map(|_| Order::default()));
    }

    /// Ends taking notes.
    pub fn end() -> Option<Order> {
        ORDER.take()
    }

    fn close(&mut self, past: usize) {
        let touches = if self.unsure { vec![Touch::ALL] } else { std::mem::take(&mut self.touches) };
        if past > self.pieces.last().map_or(0, |p| p.past) {
            self.pieces.push(Piece { past, touches });
        }
        self.touches.clear();
        self.unsure = false;
    }

    fn knows(&self, address: u64) -> bool {
        self.touches.iter().any(|t| (t.start..t.end).contains(&address))
    }
}

fn in_piece<R>(f: impl FnOnce(&mut Order) -> R) -> Option<R> {
    ORDER.with_borrow_mut(|order| order.as_mut().filter(|order| order.depth > 0).map(f))
}

impl Device {
    /// Does something that touches no memory of the device but what is named meanwhile (by whoever takes a block for it, or by
    /// [`touches`](Self::touches)): if it is recorded, it may be done beside other pieces.
    pub fn piece<R>(&self, f: impl FnOnce() -> R) -> R {
        // Also where `f` unwinds.
        struct Over<'a>(&'a Device);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.step_piece(-1);
            }
        }
        if !self.records() {
            return f();
        }
        self.step_piece(1);
        let _over = Over(self);
        f()
    }

    fn step_piece(&self, by: isize) {
        ORDER.with_borrow_mut(|noted| {
            let Some(order) = noted else { return };
            let outermost = if by > 0 { order.depth == 0 } else { order.depth == 1 };
            if outermost {
                // What lies between pieces is one that nobody named anything for.
                order.unsure |= by > 0;
                match self.recorded_nodes() {
                    Some(past) => order.close(past),
                    None => {
                        *noted = None;
                        return;
                    }
                }
            }
            order.depth = order.depth.saturating_add_signed(by);
        });
    }

    /// How many nodes were recorded by now.
    fn recorded_nodes(&self) -> Option<usize> {
        let (mut state, mut graph, mut nodes) = (0, std::ptr::null_mut(), 0);
        let none = std::ptr::null_mut::<Handle>;
        // SAFETY: they write a number and a handle, and the number of nodes; what is null is not asked for.
        let status = unsafe {
            let stream = self.stream;
            let said = (shaping()?.state)(
                stream,
                &mut state,
                std::ptr::null_mut(),
                &mut graph,
                none().cast(),
                none().cast(),
                none().cast(),
            );
            if said == 0 && !graph.is_null() { (self.driver.graph_nodes)(graph, none().cast(), &mut nodes) } else { 1 }
        };
        (status == 0).then_some(nodes)
    }

    /// Says that a piece of work that is being recorded reads or writes a block.
    pub fn touches(&self, block: &Block, written: bool) {
        self.touches_at(block.address(), block.len(), written);
    }

    /// The same of so many bytes at an address.
    pub fn touches_at(&self, start: u64, bytes: usize, written: bool) {
        if bytes > 0 && self.records() {
            let touch = Touch { start, end: start + bytes as u64, written };
            in_piece(|order| {
                if !order.touches.contains(&touch) {
                    order.touches.push(touch);
                }
            });
        }
    }

    /// Looks whether all memory that a kernel is given was named; else the piece keeps its place in the queue.
    pub(crate) fn vouch(&self, addresses: &[u64]) {
        if self.records() {
            in_piece(|order| order.unsure |= addresses.iter().any(|&a| a != 0 && !order.knows(a)));
        }
    }

    /// The same for arguments of a kernel. Numbers may be addresses as well, where they lie in memory of ours.
    pub(crate) fn vouch_for(&self, arguments: &[Argument]) {
        if !self.records() {
            return;
        }
        in_piece(|order| {
            let number = |n: i64| order.knows(n as u64) || !self.memory().holds(n as u64);
            let known = |argument: &Argument| match argument {
                Argument::Address(a) => *a == 0 || *a == self.alarm.address() || order.knows(*a),
                Argument::Int(n) => number(*n),
                Argument::Words(words) => words.iter().all(|&n| number(n)),
                Argument::Float(_) | Argument::Complex(_) => true,
            };
            order.unsure |= !arguments.iter().all(known);
        });
    }

    /// Where so many counters of a piece begin among all there are; those of others, which may run at the same time, lie elsewhere.
    pub(crate) fn next_counters(&self, all: usize, count: usize) -> usize {
        let next = |order: &mut Order| {
            let start = if order.counter + count > all { 0 } else { order.counter };
            order.counter = start + count;
            start
        };
        if self.records() { in_piece(next).unwrap_or(0) } else { 0 }
    }
}

/// Which pieces each must wait for; those that others of them wait for are left out.
fn waits(pieces: &[Piece]) -> Vec<Vec<usize>> {
    let words = pieces.len().div_ceil(64);
    // Of each piece, all that are done before it.
    let mut before: Vec<Vec<u64>> = Vec::with_capacity(pieces.len());
    let mut all = Vec::with_capacity(pieces.len());
    for (i, piece) in pieces.iter().enumerate() {
        let (mut done, mut waits) = (vec![0u64; words], Vec::new());
        for j in (0..i).rev() {
            let is_done = done[j / 64] >> (j % 64) & 1 == 1;
            if is_done || !piece.touches.iter().any(|t| pieces[j].touches.iter().any(|o| t.meets(o))) {
                continue;
            }
            waits.push(j);
            done[j / 64] |= 1 << (j % 64);
            done.iter_mut().zip(&before[j]).for_each(|(d, b)| *d |= b);
        }
        before.push(done);
        all.push(waits);
    }
    all
}

/// Lets the pieces of recorded work run side by side where they may. A graph that is no queue stays as it is.
pub(crate) fn loosen(driver: &Driver, graph: Handle, mut order: Order) -> Result<()> {
    let Some(shaping) = shaping() else { return Ok(()) };
    let Some((queue, edges)) = queue(driver, shaping, graph)? else { return Ok(()) };
    if order.pieces.last().is_some_and(|p| p.past > queue.len()) {
        return Ok(());
    }
    order.unsure = true;
    order.close(queue.len());
    let (mut cut, mut made) = (Wires::default(), Wires::default());
    let mut first = 0;
    for (piece, waits) in order.pieces.iter().zip(waits(&order.pieces)) {
        let at = std::mem::replace(&mut first, piece.past);
        let lasts: Vec<usize> = waits.iter().map(|&j| order.pieces[j].past - 1).collect();
        if at == 0 || lasts == [at - 1] {
            continue;
        }
        cut.push(queue[at - 1], queue[at], edges[at - 1]);
        for &last in &lasts {
            let mut kind = 0;
            // SAFETY: it writes a number.
            driver.check("cuGraphNodeGetType", unsafe { (shaping.kind)(queue[last], &mut kind) })?;
            // Kernels are of kind 0. A kernel that waits by itself does so for one other.
            let overlaps = edges[at - 1].waits_by_itself() && lasts.len() == 1 && kind == 0;
            made.push(queue[last], queue[at], if overlaps { edges[at - 1] } else { Edge::default() });
        }
    }
    // SAFETY: the nodes are the graph's; those edges are there that are taken away, and those are not that are made.
    unsafe {
        let status = (shaping.part)(graph, cut.from.as_ptr(), cut.to.as_ptr(), cut.edges.as_ptr(), cut.from.len());
        driver.check("cuGraphRemoveDependencies", status)?;
        let status =
            (shaping.connect)(graph, made.from.as_ptr(), made.to.as_ptr(), made.edges.as_ptr(), made.from.len());
        driver.check("cuGraphAddDependencies", status)
    }
}

/// Edges as the driver takes them.
#[derive(Default)]
struct Wires {
    from: Vec<Handle>,
    to: Vec<Handle>,
    edges: Vec<Edge>,
}

impl Wires {
    fn push(&mut self, from: Handle, to: Handle, edge: Edge) {
        self.from.push(from);
        self.to.push(to);
        self.edges.push(edge);
    }
}

/// The nodes of a graph in the order of a queue, and the edges between neighbours; nothing if it is none.
fn queue(driver: &Driver, shaping: &Shaping, graph: Handle) -> Result<Option<(Vec<Handle>, Vec<Edge>)>> {
    let (mut nodes, mut count) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: each writes a number.
    unsafe {
        driver.check("cuGraphGetNodes", (driver.graph_nodes)(graph, null, &mut nodes))?;
        driver.check("cuGraphGetEdges", (shaping.edges)(graph, null, null, std::ptr::null_mut(), &mut count))?;
    }
    if nodes == 0 || count + 1 != nodes {
        return Ok(None);
    }
    let mut wires =
        Wires { from: vec![null_node(); count], to: vec![null_node(); count], edges: vec![Edge::default(); count] };
    // SAFETY: there is room for as many edges as are said.
    let status = unsafe {
        let Wires { from, to, edges } = &mut wires;
        (shaping.edges)(graph, from.as_mut_ptr(), to.as_mut_ptr(), edges.as_mut_ptr(), &mut count)
    };
    driver.check("cuGraphGetEdges", status)?;
    let next: HashMap<Handle, usize> = wires.from.iter().copied().zip(0..).collect();
    let first = wires.from.iter().find(|node| !wires.to.contains(node)).copied();
    let mut queue: Vec<Handle> = first.into_iter().collect();
    let mut edges = Vec::with_capacity(count);
    while let Some(&at) = queue.last().and_then(|node| next.get(node)) {
        queue.push(wires.to[at]);
        edges.push(wires.edges[at]);
    }
    Ok((queue.len() == nodes).then_some((queue, edges)))
}

fn null_node() -> Handle {
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(past: usize, touches: &[(u64, u64, bool)]) -> Piece {
        Piece { past, touches: touches.iter().map(|&(start, end, written)| Touch { start, end, written }).collect() }
    }

    #[test]
    fn pieces_wait_for_those_whose_memory_they_touch() {
        let pieces = [
            piece(1, &[(0, 8, true)]),
            // Two read what the first writes.
            piece(2, &[(0, 8, false), (8, 16, true)]),
            piece(3, &[(4, 6, false), (16, 24, true)]),
            // This one reads what both write, and by that waits for the first.
            piece(4, &[(0, 8, false), (8, 16, false), (20, 21, false), (24, 32, true)]),
            // This one writes what the second has read.
            piece(5, &[(7, 8, true)]),
            // Neighbours do not meet.
            piece(6, &[(32, 40, true)]),
            Piece { past: 7, touches: vec![Touch::ALL] },
            piece(8, &[(40, 48, false)]),
        ];
        let expected: [&[usize]; 8] = [&[], &[0], &[0], &[2, 1], &[3], &[], &[5, 4], &[6]];
        assert_eq!(waits(&pieces), expected);
    }
}
