//! The index of `x[…]` as bounds of axes, for those who write it in another form.

use crate::given::Given;
use crate::graph::{Arg, Size};
use sampan_core::Value as Plain;

/// Where a slice ends that has no end.
pub(crate) const OPEN: i64 = i32::MAX as i64;

/// One part of an index.
enum Part {
    Int(Size),
    Slice(Option<Size>, Option<Size>, i64),
    New,
    Ellipsis,
    Tensor(usize),
}

fn parts(call: &Given) -> Option<Vec<Part>> {
    let size = |a: &Arg| match a {
        Arg::Plain(Plain::None) => Some(None),
        Arg::Plain(Plain::Int(i)) => Some(Some(Size::fixed(*i))),
        Arg::Size(s) => Some(Some(s.clone())),
        _ => None,
    };
    let plain = |v: &Plain| Arg::Plain(v.clone());
    let part = |a: &Arg| -> Option<Part> {
        Some(match a {
            Arg::Plain(Plain::Int(i)) => Part::Int(Size::fixed(*i)),
            Arg::Size(s) => Part::Int(s.clone()),
            Arg::Plain(Plain::None) => Part::New,
            Arg::Plain(Plain::Str(s)) if &**s == "..." => Part::Ellipsis,
            Arg::Tensor(id) => Part::Tensor(*id),
            Arg::Plain(Plain::List(l)) if l.len() == 3 => {
                let step = size(&plain(&l[2]))?.map_or(Some(1), |s| s.as_fixed())?;
                Part::Slice(size(&plain(&l[0]))?, size(&plain(&l[1]))?, step)
            }
            Arg::List(l) if l.len() == 3 => {
                Part::Slice(size(&l[0])?, size(&l[1])?, size(&l[2])?.map_or(Some(1), |s| s.as_fixed())?)
            }
            _ => return None,
        })
    };
    match call.0.arg("index")? {
        Arg::List(list) => list.iter().map(part).collect(),
        Arg::Plain(Plain::List(list)) => list.iter().map(|v| part(&plain(v))).collect(),
        Arg::Plain(Plain::Ints(list)) => Some(list.iter().map(|&i| Part::Int(Size::fixed(i))).collect()),
        one => Some(vec![part(one)?]),
    }
}

/// An index as bounds of axes.
#[derive(Default)]
pub(crate) struct Bounds {
    pub axes: Vec<i64>,
    pub starts: Vec<Size>,
    pub ends: Vec<Size>,
    pub steps: Vec<i64>,
    /// Axes that an integer takes away.
    pub gone: Vec<i64>,
    /// Where the result has new axes.
    pub new: Vec<i64>,
    /// A tensor that picks along an axis.
    pub picks: Vec<(usize, i64)>,
}

impl Bounds {
    /// The index of a call, of a tensor of that many axes; none if it is more than bounds.
    pub fn of(call: &Given, rank: usize) -> Option<Bounds> {
        bounds(parts(call)?, rank)
    }
}

fn bounds(parts: Vec<Part>, rank: usize) -> Option<Bounds> {
    let taken = parts.iter().filter(|p| !matches!(p, Part::New | Part::Ellipsis)).count();
    let (mut b, mut axis, mut place) = (Bounds::default(), 0i64, 0i64);
    for part in parts {
        match part {
            Part::Ellipsis => {
                let skipped = rank.checked_sub(taken)? as i64;
                (axis, place) = (axis + skipped, place + skipped);
            }
            Part::New => {
                b.new.push(place);
                place += 1;
            }
            Part::Tensor(id) => {
                b.picks.push((id, axis - b.gone.len() as i64));
                (axis, place) = (axis + 1, place + 1);
            }
            Part::Int(i) => {
                let end = match i.as_fixed() {
                    Some(-1) => Size::fixed(OPEN),
                    _ => Size { plus: i.plus + i.over, ..i.clone() },
                };
                b.axes.push(axis);
                b.starts.push(i);
                b.ends.push(end);
                b.steps.push(1);
                b.gone.push(axis);
                axis += 1;
            }
            Part::Slice(start, end, step) => {
                if start.is_some() || end.is_some() || step != 1 {
                    b.axes.push(axis);
                    b.starts.push(start.unwrap_or(Size::fixed(if step > 0 { 0 } else { OPEN })));
                    b.ends.push(end.unwrap_or(Size::fixed(if step > 0 { OPEN } else { -OPEN - 1 })));
                    b.steps.push(step);
                }
                (axis, place) = (axis + 1, place + 1);
            }
        }
    }
    Some(b)
}
