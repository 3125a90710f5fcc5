//! Boxes in layers: who comes after whom goes below, lines cross seldom, and long lines are straight.
//!
//! A line over several layers is a chain of places in them. The order within a layer comes from the mean place of the
//! neighbours, in sweeps down and up. Places follow by least squares: each wants to be where its neighbours are, none may
//! overlap the next, which is a regression by a rising function.

/// How far a box reaches to both sides of its middle, and how high it is.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub left: f64,
    pub right: f64,
    pub height: f64,
}

pub(super) struct Layout {
    /// The middle of the upper side of each box.
    pub at: Vec<(f64, f64)>,
    /// For each line the points between its boxes; `None` for one that would be too long to follow.
    pub routes: Vec<Option<Vec<(f64, f64)>>>,
    pub width: f64,
    pub height: f64,
}

/// Between boxes side by side, and between layers.
const GAP: f64 = 22.0;
pub(super) const RISE: f64 = 40.0;
/// A line over more layers is not drawn.
const FARTHEST: usize = 40;
const SWEEPS: usize = 12;

struct Place {
    extent: Extent,
    layer: usize,
    /// Neighbours above and below, with the weight of their line.
    up: Vec<(usize, f64)>,
    down: Vec<(usize, f64)>,
    x: f64,
    rank: f64,
}

/// The layer of each box: below all that it follows; what follows nothing lies right above its first reader.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut ins, mut outs) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for &(from, to) in edges {
        ins[to].push(from);
        outs[from].push(to);
    }
    let mut layer = vec![0usize; count];
    for to in 0..count {
        layer[to] = ins[to].iter().map(|&from| layer[from] + 1).max().unwrap_or(0);
    }
    for from in (0..count).rev().filter(|&n| ins[n].is_empty()) {
        layer[from] = outs[from].iter().map(|&to| layer[to]).min().map_or(0, |first| first.saturating_sub(1));
    }
    layer
}

/// Where things that want to be at given places go if each must be some way behind the one before.
fn spread(wanted: &[(f64, f64)], apart: &[f64]) -> Vec<f64> {
    let mut shift = 0.0;
    // Runs of neighbours that touch: the sum of weighted places, of weights, and how many.
    let mut runs: Vec<(f64, f64, usize)> = Vec::new();
    for (i, &(place, weight)) in wanted.iter().enumerate() {
        shift += apart[i];
        runs.push(((place - shift) * weight, weight, 1));
        while let [.., (a, v, n), (b, w, m)] = runs[..] {
            if a / v <= b / w {
                break;
            }
            runs.pop();
            runs.pop();
            runs.push((a + b, v + w, n + m));
        }
    }
    let mut places = Vec::with_capacity(wanted.len());
    shift = 0.0;
    for (sum, weight, count) in runs {
        for _ in 0..count {
            shift += apart[places.len()];
            places.push(sum / weight + shift);
        }
    }
    places
}

/// Places boxes, given in an order in which lines go forward.
pub(super) fn layout(boxes: &[Extent], edges: &[(usize, usize)]) -> Layout {
    let layer = layers(boxes.len(), edges);
    let plain = |(extent, layer): (&Extent, &usize)| {
        let (up, down) = Default::default();
        Place { extent: *extent, layer: *layer, up, down, x: 0.0, rank: 0.0 }
    };
    let mut places: Vec<Place> = boxes.iter().zip(&layer).map(plain).collect();
    let mut chains: Vec<Option<Vec<usize>>> = Vec::new();
    for &(from, to) in edges {
        if layer[to] - layer[from] > FARTHEST {
            chains.push(None);
            continue;
        }
        let mut chain = vec![from];
        for layer in layer[from] + 1..layer[to] {
            chain.push(places.len());
            let extent = Extent { left: 3.0, right: 3.0, height: 0.0 };
            places.push(Place { layer, ..plain((&extent, &0)) });
        }
        chain.push(to);
        for pair in chain.windows(2) {
            let own = |n: usize| f64::from(u8::from(n < boxes.len()));
            // What has no box of its own should not bend.
            let weight = 8.0 / (1.0 + own(pair[0]) * 2.0 + own(pair[1]) * 2.0);
            places[pair[0]].down.push((pair[1], weight));
            places[pair[1]].up.push((pair[0], weight));
        }
        chains.push(Some(chain));
    }
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..places.len()).for_each(|n| rows[places[n].layer].push(n));
    order(&mut places, &mut rows);
    for row in &rows {
        let wanted = vec![(0.0, 1.0); row.len()];
        settle(&mut places, row, &wanted);
    }
    for sweep in 0..SWEEPS * 2 {
        let all: Vec<usize> = if sweep % 2 == 0 { (0..count).collect() } else { (0..count).rev().collect() };
        for k in all {
            let wanted: Vec<(f64, f64)> = rows[k].iter().map(|&n| wish(&places, n, sweep)).collect();
            settle(&mut places, &rows[k], &wanted);
        }
    }
    finished(&places, &rows, boxes.len(), &chains)
}

/// Where a box wants to be, and how much.
fn wish(places: &[Place], n: usize, sweep: usize) -> (f64, f64) {
    let place = &places[n];
    let sides: [&[(usize, f64)]; 2] = match sweep {
        // First from one side alone, so that changes travel far.
        s if s + 6 > SWEEPS * 2 => [&place.up, &place.down],
        s if s % 2 == 0 => [&place.up, &[]],
        _ => [&place.down, &[]],
    };
    let (mut sum, mut weight) = (0.0, 0.0);
    for &(other, w) in sides.into_iter().flatten() {
        (sum, weight) = (sum + places[other].x * w, weight + w);
    }
    if weight == 0.0 { (place.x, 0.1) } else { (sum / weight, weight) }
}

fn settle(places: &mut [Place], row: &[usize], wanted: &[(f64, f64)]) {
    let mut apart = vec![0.0];
    apart.extend(row.windows(2).map(|p| places[p[0]].extent.right + places[p[1]].extent.left + GAP));
    for (&n, x) in row.iter().zip(spread(wanted, &apart)) {
        places[n].x = x;
    }
}

/// Puts each layer in the order of what lies above, then below, and so on.
fn order(places: &mut [Place], rows: &mut [Vec<usize>]) {
    let rank = |places: &mut [Place], row: &[usize]| {
        row.iter().enumerate().for_each(|(i, &n)| places[n].rank = (i as f64 + 0.5) / row.len() as f64);
    };
    rows.iter().for_each(|row| rank(places, row));
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let all: Vec<usize> = if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for k in all {
            let mean = |n: usize| {
                let near = if down { &places[n].up } else { &places[n].down };
                if near.is_empty() {
                    return places[n].rank;
                }
                near.iter().map(|&(other, _)| places[other].rank).sum::<f64>() / near.len() as f64
            };
            let mut keyed: Vec<(f64, usize)> = rows[k].iter().map(|&n| (mean(n), n)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[k] = keyed.into_iter().map(|(_, n)| n).collect();
            rank(places, &rows[k]);
        }
    }
}

fn finished(places: &[Place], rows: &[Vec<usize>], boxes: usize, chains: &[Option<Vec<usize>>]) -> Layout {
    let mut tops = Vec::new();
    let mut heights = Vec::new();
    let mut y = 0.0;
    for row in rows {
        let height = row.iter().map(|&n| places[n].extent.height).fold(0.0, f64::max);
        tops.push(y);
        heights.push(height);
        y += height + RISE;
    }
    let left = places.iter().map(|p| p.x - p.extent.left).fold(f64::INFINITY, f64::min);
    let right = places.iter().map(|p| p.x + p.extent.right).fold(f64::NEG_INFINITY, f64::max);
    let left = if left.is_finite() { left } else { 0.0 };
    let between = |n: &usize| {
        let layer = places[*n].layer;
        [(places[*n].x - left, tops[layer]), (places[*n].x - left, tops[layer] + heights[layer])]
    };
    Layout {
        at: places[..boxes].iter().map(|p| (p.x - left, tops[p.layer])).collect(),
        routes: chains
            .iter()
            .map(|chain| chain.as_ref().map(|c| c[1..c.len() - 1].iter().flat_map(between).collect()))
            .collect(),
        width: (right - left).max(0.0),
        height: (y - RISE).max(0.0),
    }
}
