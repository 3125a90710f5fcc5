//! Indexing against a reference that walks the coordinates of the result one by one, and against NumPy's answers
//! recorded by `scripts/indexing_golden.py`.

use sampan_core::error::Kind;
use sampan_core::ops::indexing::SetitemOpts;
use sampan_core::{Bool, DType, Index, Tensor, Value, i, no_grad};
use serde_json::Value as Json;

/// One part of an index as plain data.
#[derive(Clone, Debug)]
enum Part {
    Int(i64),
    Slice([Option<i64>; 3]),
    Dots,
    New,
    Ints(Vec<usize>, Vec<i64>),
    Mask(Vec<usize>, Vec<bool>),
    Truth(bool),
}

impl Part {
    fn index(&self) -> Index {
        match self.clone() {
            Part::Int(i) => Index::Int(i),
            Part::Slice([start, stop, step]) => Index::Slice { start, stop, step },
            Part::Dots => Index::Ellipsis,
            Part::New => Index::NewAxis,
            Part::Ints(shape, values) => Index::Tensor(Tensor::from_vec(values, shape)),
            Part::Mask(shape, values) => {
                Index::Tensor(Tensor::from_vec(values.into_iter().map(Bool::from).collect(), shape))
            }
            Part::Truth(b) => Index::Bool(b),
        }
    }

    fn axes(&self) -> usize {
        match self {
            Part::Int(_) | Part::Slice(_) | Part::Ints(..) => 1,
            Part::Mask(shape, _) => shape.len(),
            _ => 0,
        }
    }

    fn advanced(&self) -> bool {
        matches!(self, Part::Ints(..) | Part::Mask(..) | Part::Truth(_))
    }

    /// Makes a copy of what it reads; a single position, given as a tensor without axes, alone does not.
    fn copies(&self) -> bool {
        self.advanced() && !matches!(self, Part::Ints(shape, _) if shape.is_empty())
    }
}

fn indices(parts: &[Part]) -> Vec<Index> {
    parts.iter().map(Part::index).collect()
}

/// Every coordinate of a shape, in order.
fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.iter().flat_map(|c| (0..n).map(move |i| [c.as_slice(), &[i]].concat())).collect()
    })
}

fn flat(shape: &[usize], coordinate: &[usize]) -> usize {
    shape.iter().zip(coordinate).fold(0, |at, (&n, &c)| at * n + c)
}

/// The positions a Python slice visits.
fn visited(n: usize, [start, stop, step]: [Option<i64>; 3]) -> Vec<usize> {
    let (n, step) = (n as i64, step.unwrap_or(1));
    let from_end = |i: i64| if i < 0 { i + n } else { i };
    let mut out = Vec::new();
    if step > 0 {
        let mut i = start.map_or(0, |s| from_end(s).max(0));
        while i < stop.map_or(n, |s| from_end(s).min(n)) {
            out.push(i as usize);
            i += step;
        }
    } else {
        let mut i = start.map_or(n - 1, |s| from_end(s).min(n - 1));
        while i > stop.map_or(-1, |s| from_end(s).max(-1)) {
            out.push(i as usize);
            i += step;
        }
    }
    out
}

/// An axis of the result.
enum Axis {
    /// Visits these positions of an axis of the source.
    Along(usize, Vec<usize>),
    New,
    /// An axis of the shape that the advanced indices have together.
    Common(usize),
}

const OUTSIDE: usize = usize::MAX;

/// The shape of the result and, for each of its elements, where it lies in the source. None where NumPy refuses.
fn reference(shape: &[usize], parts: &[Part]) -> Option<(Vec<usize>, Vec<usize>)> {
    let used: usize = parts.iter().map(Part::axes).sum();
    let rest = shape.len().checked_sub(used)?;
    let mut parts = parts.to_vec();
    if !parts.iter().any(|p| matches!(p, Part::Dots)) {
        parts.push(Part::Dots);
    }
    let any = parts.iter().any(Part::advanced);
    let mut axis = 0;
    let mut result = Vec::new();
    let mut fixed: Vec<(usize, usize)> = Vec::new();
    // For each advanced index: its shape, and for each place in it the coordinates it sets.
    type Places = Vec<Vec<(usize, usize)>>;
    let mut advanced: Vec<(Vec<usize>, Places)> = Vec::new();
    let mut joined: Vec<bool> = Vec::new();
    let mut at = None;
    let inside = |i: i64, n: usize| (-(n as i64)..n as i64).contains(&i).then(|| i.rem_euclid(n as i64) as usize);
    for part in &parts {
        let joins = any && (part.advanced() || matches!(part, Part::Int(_)));
        joined.push(joins);
        if joins && at.is_none() {
            at = Some(result.len());
        }
        match part {
            Part::Int(i) => fixed.push((axis, inside(*i, shape[axis])?)),
            Part::Slice(s) => result.push(Axis::Along(axis, visited(shape[axis], *s))),
            Part::Dots => (0..rest).for_each(|a| result.push(Axis::Along(axis + a, (0..shape[axis + a]).collect()))),
            Part::New => result.push(Axis::New),
            Part::Ints(s, values) => {
                // A place outside matters only if it is read: the indices together may name none.
                let places = values.iter().map(|&i| vec![(axis, inside(i, shape[axis]).unwrap_or(OUTSIDE))]);
                advanced.push((s.clone(), places.collect()));
            }
            Part::Mask(s, values) => {
                if s[..] != shape[axis..axis + s.len()] {
                    return None;
                }
                let held = coordinates(s).into_iter().zip(values).filter(|(_, v)| **v);
                let places: Places =
                    held.map(|(c, _)| c.iter().enumerate().map(|(a, &i)| (axis + a, i)).collect()).collect();
                advanced.push((vec![places.len()], places));
            }
            Part::Truth(b) => advanced.push((vec![*b as usize], vec![vec![]; *b as usize])),
        }
        axis += if matches!(part, Part::Dots) { rest } else { part.axes() };
    }
    let mut common: Vec<usize> = Vec::new();
    for (s, _) in &advanced {
        let rank = common.len().max(s.len());
        let get = |v: &[usize], i: usize| if i + v.len() >= rank { v[i + v.len() - rank] } else { 1 };
        common = (0..rank)
            .map(|i| match (get(&common, i), get(s, i)) {
                (a, b) if a == b || b == 1 => Some(a),
                (1, b) => Some(b),
                _ => None,
            })
            .collect::<Option<_>>()?;
    }
    let lost = advanced.iter().flat_map(|(_, places)| places.iter().flatten()).any(|&(_, i)| i == OUTSIDE);
    if lost && !common.contains(&0) {
        return None;
    }
    // One run of advanced parts keeps its place; several go to the front.
    let runs = joined.iter().enumerate().filter(|&(i, &j)| j && (i == 0 || !joined[i - 1])).count();
    let place = if runs == 1 { at.unwrap_or(0) } else { 0 };
    for k in (0..common.len()).rev() {
        result.insert(place, Axis::Common(k));
    }
    let extent = |a: &Axis| match a {
        Axis::Along(_, positions) => positions.len(),
        Axis::New => 1,
        Axis::Common(k) => common[*k],
    };
    let out_shape: Vec<usize> = result.iter().map(extent).collect();
    let source = |coordinate: Vec<usize>| {
        let mut from = vec![0; shape.len()];
        let mut shared = vec![0; common.len()];
        for (a, &c) in result.iter().zip(&coordinate) {
            match a {
                Axis::Along(axis, positions) => from[*axis] = positions[c],
                Axis::New => {}
                Axis::Common(k) => shared[*k] = c,
            }
        }
        fixed.iter().for_each(|&(axis, i)| from[axis] = i);
        for (s, places) in &advanced {
            let own: Vec<usize> =
                shared[common.len() - s.len()..].iter().zip(s).map(|(&c, &n)| if n == 1 { 0 } else { c }).collect();
            places[flat(s, &own)].iter().for_each(|&(axis, i)| from[axis] = i);
        }
        flat(shape, &from)
    };
    Some((out_shape.clone(), coordinates(&out_shape).into_iter().map(source).collect()))
}

/// A weak generator; what it draws is the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn shape(&mut self) -> Vec<usize> {
        (0..self.below(5)).map(|_| if self.one_in(25) { 0 } else { 1 + self.below(4) }).collect()
    }

    fn part(&mut self, left: &[usize], broken: bool) -> Part {
        let slack = broken as i64;
        let Some(&n) = left.first() else {
            return if self.one_in(2) { Part::New } else { Part::Truth(self.one_in(2)) };
        };
        let wide = n as i64;
        match self.below(10) {
            0 => Part::New,
            1 if self.one_in(2) => Part::Truth(!self.one_in(4)),
            1..=3 if n > 0 || broken => Part::Int(self.between(-wide - slack, wide - 1 + slack)),
            4..=6 => {
                let mut bound = || (!self.one_in(3)).then(|| self.between(-wide - 2, wide + 2));
                let (start, stop) = (bound(), bound());
                let step = [None, Some(1), Some(2), Some(-1), Some(-2), Some(i64::MIN), Some(i64::MAX)][self.below(7)];
                // A reference that adds steps one by one cannot take the longest.
                let step = step.map(|s| s.clamp(-1 << 40, 1 << 40));
                Part::Slice([start, stop, step])
            }
            7 | 8 if n > 0 || broken => {
                let shapes: [&[usize]; 8] = [&[], &[1], &[2], &[2], &[3], &[2, 1], &[1, 2], &[0]];
                let shape = shapes[self.below(8)].to_vec();
                let count = shape.iter().product();
                Part::Ints(shape, (0..count).map(|_| self.between(-wide - slack, wide - 1 + slack)).collect())
            }
            _ => {
                let rank = 1 + self.below(left.len().min(3));
                let shape = left[..rank].to_vec();
                let count = shape.iter().product();
                Part::Mask(shape, (0..count).map(|_| self.one_in(2)).collect())
            }
        }
    }

    fn parts(&mut self, shape: &[usize], broken: bool) -> Vec<Part> {
        let mut left = shape;
        let mut parts = Vec::new();
        for _ in 0..self.below(shape.len() + 2) {
            let part = self.part(left, broken);
            left = &left[part.axes().min(left.len())..];
            parts.push(part);
        }
        if self.one_in(3) {
            parts.insert(self.below(parts.len() + 1), Part::Dots);
        }
        parts
    }

    fn numbers(&mut self, shape: &[usize]) -> Vec<f64> {
        (0..shape.iter().product()).map(|_| self.between(-50, 50) as f64 / 8.0).collect()
    }

    /// A shape that broadcasts to another one.
    fn narrowed(&mut self, shape: &[usize]) -> Vec<usize> {
        let skip = if self.one_in(3) { self.below(shape.len() + 1) } else { 0 };
        let mut out: Vec<usize> = shape[skip..].iter().map(|&n| if self.one_in(4) { 1 } else { n }).collect();
        if skip == 0 && self.one_in(5) {
            out.insert(0, 1);
        }
        out
    }
}

/// Where each element of a broadcast result comes from.
fn broadcast_source(own: &[usize], shape: &[usize]) -> Vec<usize> {
    let own = &own[own.len().saturating_sub(shape.len())..];
    coordinates(shape)
        .iter()
        .map(|c| {
            let c: Vec<usize> =
                c[shape.len() - own.len()..].iter().zip(own).map(|(&c, &n)| if n == 1 { 0 } else { c }).collect();
            flat(own, &c)
        })
        .collect()
}

#[test]
fn reads_match_the_reference() {
    let mut draw = Draw(1);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..4000 {
        let shape = draw.shape();
        let broken = draw.one_in(12);
        let parts = draw.parts(&shape, broken);
        let values = draw.numbers(&shape);
        let leaf = Tensor::from_vec(values.clone(), &shape).requires_grad_();
        let got = leaf.try_get(indices(&parts));
        let Some((out_shape, source)) = reference(&shape, &parts) else {
            assert!(got.is_err(), "{shape:?} {parts:?} must be refused");
            refused += 1;
            continue;
        };
        let got = got.unwrap_or_else(|e| panic!("{shape:?} {parts:?}: {e}"));
        assert_eq!(got.shape(), out_shape, "{shape:?} {parts:?}");
        let want: Vec<f64> = source.iter().map(|&s| values[s]).collect();
        assert_eq!(got.to_vec::<f64>(), want, "{shape:?} {parts:?}");
        assert_eq!(got.shares_memory(&leaf), !parts.iter().any(Part::copies), "a view or a copy? {parts:?}");
        // Through other strides: the same tensor with its axes reversed in memory.
        let reversed: Vec<i64> = (0..shape.len() as i64).rev().collect();
        let strided = leaf.detach().transpose(reversed.as_slice()).contiguous().transpose(reversed);
        assert_eq!(strided.get(indices(&parts)).to_vec::<f64>(), want, "strided {shape:?} {parts:?}");
        // The encoding and back.
        assert_eq!(strided.getitem(Value::from(indices(&parts))).to_vec::<f64>(), want);
        let weights = draw.numbers(&out_shape);
        let mut grad = vec![0.0; values.len()];
        source.iter().zip(&weights).for_each(|(&s, w)| grad[s] += w);
        (got * Tensor::from_vec(weights, &out_shape)).sum(()).backward();
        assert_eq!(leaf.grad().unwrap().to_vec::<f64>(), grad, "gradient of {shape:?} {parts:?}");
        read += 1;
    }
    assert!(read > 3000 && refused > 50, "{read} read, {refused} refused");
}

#[test]
fn writes_match_the_reference() {
    let mut draw = Draw(2);
    for _ in 0..3000 {
        let shape = draw.shape();
        let parts = draw.parts(&shape, false);
        let Some((out_shape, source)) = reference(&shape, &parts) else { continue };
        let accumulate = draw.one_in(3);
        let own = draw.narrowed(&out_shape);
        let (old, new) = (draw.numbers(&shape), draw.numbers(&own));
        let from = broadcast_source(&own, &out_shape);
        let mut want = old.clone();
        let mut writer = vec![None; old.len()];
        for (k, &s) in source.iter().enumerate() {
            want[s] = if accumulate { want[s] + new[from[k]] } else { new[from[k]] };
            writer[s] = Some(k);
        }
        let what = format!("{shape:?} {parts:?} from {own:?}, accumulate {accumulate}");
        let (x, v) =
            (Tensor::from_vec(old.clone(), &shape).requires_grad_(), Tensor::from_vec(new, &own).requires_grad_());
        // Eagerly, into the memory of an intermediate result.
        let mut y = &x * 1.0;
        let (memory, version) = (y.clone(), y.inplace_version());
        let write = |y: &mut Tensor, v: &Tensor| {
            if accumulate { y.try_add_at(indices(&parts), v) } else { y.try_set(indices(&parts), v) }
        };
        write(&mut y, &v).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(y.to_vec::<f64>(), want, "{what}");
        assert!(y.shares_memory(&memory) && y.inplace_version() == version + 1, "{what}");
        // As an op that returns a copy.
        let copy = x.setitem_with(indices(&parts), &v, SetitemOpts::new().accumulate(accumulate));
        assert_eq!(copy.to_vec::<f64>(), want, "{what}");
        // Into a strided tensor.
        let reversed: Vec<i64> = (0..shape.len() as i64).rev().collect();
        let mut strided = x.detach().transpose(reversed.as_slice()).contiguous().transpose(reversed);
        write(&mut strided, &v.detach()).unwrap();
        assert_eq!(strided.to_vec::<f64>(), want, "strided {what}");
        let weights = draw.numbers(&shape);
        let w = Tensor::from_vec(weights.clone(), &shape);
        let mut grad_x = weights.clone();
        let mut grad_v = vec![0.0; v.numel()];
        for (k, &s) in source.iter().enumerate() {
            if !accumulate {
                grad_x[s] = 0.0;
            }
            if accumulate || writer[s] == Some(k) {
                grad_v[from[k]] += weights[s];
            }
        }
        for result in [y, copy] {
            x.clear_grad();
            v.clear_grad();
            (result * &w).sum(()).backward();
            assert_eq!(x.grad().unwrap().to_vec::<f64>(), grad_x, "gradient of x, {what}");
            assert_eq!(v.grad().unwrap().to_vec::<f64>(), grad_v, "gradient of the value, {what}");
        }
    }
}

fn part_of(json: &Json) -> Part {
    let int = |v: &Json| v.as_i64();
    match json {
        Json::Null => Part::New,
        Json::Bool(b) => Part::Truth(*b),
        Json::Number(n) => Part::Int(n.as_i64().unwrap()),
        Json::String(_) => Part::Dots,
        Json::Array(s) => Part::Slice([int(&s[0]), int(&s[1]), int(&s[2])]),
        Json::Object(o) => {
            let shape = list(&o["shape"]).iter().map(|&n| n as usize).collect();
            match o.get("ints") {
                Some(values) => Part::Ints(shape, list(values)),
                None => Part::Mask(shape, list(&o["mask"]).iter().map(|&v| v != 0).collect()),
            }
        }
    }
}

fn list(json: &Json) -> Vec<i64> {
    json.as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect()
}

#[test]
fn numpy_agrees() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("../data/indexing.json")).unwrap();
    assert!(cases.len() >= 300);
    for case in cases {
        let shape: Vec<usize> = list(&case["shape"]).iter().map(|&n| n as usize).collect();
        let parts: Vec<Part> = case["index"].as_array().unwrap().iter().map(part_of).collect();
        let numel = shape.iter().product::<usize>() as i64;
        let mut x = Tensor::from_vec((0..numel).collect::<Vec<i64>>(), &shape);
        let got = x.try_get(indices(&parts));
        if case.get("error").is_some() {
            assert!(got.is_err(), "{shape:?} {parts:?}");
            assert!(x.try_set(indices(&parts), 1).is_err(), "{shape:?} {parts:?}");
            continue;
        }
        let got = got.unwrap_or_else(|e| panic!("{shape:?} {parts:?}: {e}"));
        let out: Vec<usize> = list(&case["result_shape"]).iter().map(|&n| n as usize).collect();
        assert_eq!((got.shape(), got.to_vec::<i64>()), (&out[..], list(&case["result"])), "{shape:?} {parts:?}");
        let values = Tensor::from_vec((0..got.numel() as i64).map(|i| -1 - i).collect(), &out);
        let mut sum = x.setitem(i![...], 0);
        sum.set(i![...], &x).add_at(indices(&parts), &values);
        assert_eq!(sum.to_vec::<i64>(), list(&case["added"]), "added {shape:?} {parts:?}");
        x.set(indices(&parts), &values);
        assert_eq!(x.to_vec::<i64>(), list(&case["written"]), "written {shape:?} {parts:?}");
    }
}

#[test]
fn the_language_in_rust() {
    let x = Tensor::from_vec((0..24i64).collect(), [2, 3, 4]);
    let same = |a: Tensor, b: Tensor| assert_eq!((a.shape(), a.to_vec::<i64>()), (b.shape(), b.to_vec::<i64>()));
    same(x.get(1), x.get(i![1]));
    same(x.get((1, 2)), x.get(i![1usize, -1]));
    same(x.get((.., 1..)), x.get(i![(), 1..3i64]));
    same(x.get((.., ..=1)), x.get((.., ..2)));
    #[allow(clippy::reversed_empty_ranges)]
    same(x.get((.., 1..=-1)), x.get((.., 1..)));
    same(x.get(i![..., 0]), x.get((.., .., 0)));
    same(x.get(i![.., None, ..; 2]), x.get((.., ..3)).get(i![.., None, [0, 2]]));
    same(x.get(i![..; -1]), x.get([1, 0]));
    same(x.get([true, false]), x.get(..1));
    same(x.get(vec![1usize, 1]), x.get(i![Tensor::new([1i32, -1])]));
    same(x.get(i![]), x.clone());
    assert_eq!(x.get(true).shape(), [1, 2, 3, 4]);
    assert_eq!(x.get(i![1.., ..;2, &Tensor::new([0i64, 3]),]).shape(), [1, 2, 2]);
    let mut y = Tensor::zeros([2, 3], DType::Float32);
    y.set((.., 1), 2.0).set(0, Tensor::new([1i64, 2, 3])).add_at(..1, 0.5);
    assert_eq!(y.to_vec::<f32>(), [1.5, 2.5, 3.5, 0.0, 2.0, 0.0]);
}

#[test]
fn writes_see_overlapping_memory_and_themselves() {
    let mut x = Tensor::from_vec((0..5i64).collect(), [5]);
    let head = x.get(..4);
    x.set(1.., &head);
    assert_eq!(x.to_vec::<i64>(), [0, 0, 1, 2, 3]);
    let itself = x.clone();
    x.set(&itself, &itself);
    assert_eq!(x.to_vec::<i64>(), [0, 1, 2, 3, 3]);
    let reversed = x.get(i![..; -1]);
    x.set(i![...], &reversed);
    assert_eq!(x.to_vec::<i64>(), [3, 3, 2, 1, 0]);
}

#[test]
fn writes_respect_the_graph() {
    let w = Tensor::new([1.0f32, 2.0]).requires_grad_();
    let mut leaf = w.clone();
    let error = leaf.try_set(0, 1.0).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    no_grad(|| leaf.set(0, 5.0));
    assert_eq!(w.to_vec::<f32>(), [5.0, 2.0]);
    // A value saved for a gradient and then overwritten is found out.
    let mut y = &w * 1.0;
    let z = (&y * &y).sum(());
    y.set(0, 0.0);
    assert!(z.try_backward(None, false).unwrap_err().to_string().contains("version"), "stale value went unnoticed");
    // A history that begins with a write, and two writes in a row.
    let mut fresh = Tensor::zeros([3], DType::Float32);
    fresh.set(..2, &w).set(0, &(w.get(1) * 10.0));
    (&fresh * &fresh).sum(()).backward();
    assert_eq!(fresh.to_vec::<f32>(), [20.0, 2.0, 0.0]);
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [0.0, 404.0]);
}

#[test]
fn errors_name_axis_index_and_extent() {
    let mut x = Tensor::zeros([2, 3, 4], DType::Float32);
    let text = |r: sampan_core::Result<Tensor>| {
        let e = r.unwrap_err();
        (e.kind(), e.to_string())
    };
    let (kind, message) = text(x.try_get((0, 3)));
    assert_eq!(kind, Kind::OutOfRange);
    assert!(message.contains("index 3 is out of range for axis 1 of extent 3"), "{message}");
    let (_, message) = text(x.try_get((0, .., [1, -5])));
    assert!(message.contains("index -5 at position 1 is out of range for axis 2 of extent 4"), "{message}");
    let (_, message) = text(x.try_get((.., [true, false])));
    assert!(message.contains("extent 2 where axis 1 has 3"), "{message}");
    let (_, message) = text(x.try_get((0, 0, 0, 0)));
    assert!(message.contains("names 4 axes of a tensor of rank 3"), "{message}");
    let (_, message) = text(x.try_get(i![..., ...]));
    assert!(message.contains("only once"), "{message}");
    let (_, message) = text(x.try_get(i![..; 0]));
    assert!(message.contains("step 0"), "{message}");
    let (_, message) = text(x.try_get(([0, 1], [0, 1, 2])));
    assert!(message.contains("cannot be broadcast"), "{message}");
    let (kind, message) = text(x.try_get(Tensor::new([0.5f32])));
    assert_eq!(kind, Kind::InvalidType, "{message}");
    let (kind, _) = text(x.try_getitem("x"));
    assert_eq!(kind, Kind::InvalidType);
    let error = x.try_set(0, Tensor::zeros([2], DType::Float32)).unwrap_err().to_string();
    assert!(error.contains("[2] does not fit the indexed part [3, 4]") && error.contains("setitem"), "{error}");
}

#[test]
fn wrong_arguments_are_refused() {
    let x = Tensor::zeros([2, 3], DType::Float32);
    let (ids, far) = (Tensor::new([0i64, 1]), Tensor::new([0i64, 7]));
    let (floats, mask) = (Tensor::new([0.0f32, 1.0]), Tensor::new([true, false]));
    let results = [
        x.try_index_select(&far, 0),
        x.try_index_select(&floats, 0),
        x.try_index_select(&ids, 2),
        x.try_gather(&Tensor::zeros([2, 2], DType::Int64), None),
        x.try_gather_nd(&Tensor::zeros([1, 3], DType::Int64)),
        x.try_gather_nd(&Tensor::new([[0i64, 3]])),
        x.try_take(&far),
        x.try_take_along_axis(&ids, 0),
        x.try_take_along_axis(&Tensor::new([[5i64]]), 1),
        x.try_put_along_axis(&Tensor::new([[5i64]]), 1.0, 1),
        x.try_scatter(&ids, &Tensor::zeros([2, 2], DType::Float32)),
        x.try_scatter(&far, &x),
        x.try_scatter_nd_add(&Tensor::new([[0i64]]), &floats),
        x.try_scatter_reduce(0, &Tensor::new([[0i64]]), &Tensor::new([[1.0f32]]), "median"),
        x.try_index_add(&ids, 1, &x),
        x.try_index_fill(&far, 0, 1.0),
        x.try_index_put(&[ids.clone(), far.clone()], 1.0),
        x.try_masked_select(&mask),
        x.try_masked_select(&x),
        x.try_masked_fill(&mask, 1.0),
        x.try_masked_scatter(&Tensor::new([[true], [true]]), &floats),
        mask.try_where_cond(&x, 0.0),
        x.try_where_cond(&x, 0.0),
        far.try_embedding(&x, None),
        ids.try_embedding(&x, Some(5)),
        far.try_one_hot(3),
    ];
    for (i, result) in results.into_iter().enumerate() {
        assert!(result.is_err(), "call {i} gave {:?}", result.unwrap());
    }
}
