//! Whole blocks that only one side has.

use super::Context;
use super::causes::Cause;
use crate::{Call, Structure};
use std::collections::HashSet;

/// A block that only one side has: its name there, and what it is.
pub(crate) struct Block {
    /// The name, of the first where there are several in a row.
    pub name: String,
    /// Is it the candidate's?
    pub extra: bool,
    /// Why two layers get other inputs.
    pub cause: Cause,
}

fn inside(layer: &str, block: &str) -> bool {
    layer.strip_prefix(block).is_some_and(|rest| rest.starts_with('.'))
}

/// The outermost layers around these calls of which nothing has a partner.
fn alone(side: &Structure, paired: &HashSet<usize>, calls: &[&Call]) -> Vec<String> {
    let leaf = |c: &Call| !c.function && !c.container;
    // Layers that have a partner somewhere, and all that ran.
    let of = |block: &str, with: bool| {
        let ran = side.calls.iter().enumerate().filter(|(_, c)| leaf(c) && inside(&c.layer, block));
        ran.filter(|(i, _)| paired.contains(i) == with).count()
    };
    let mut found: Vec<String> = Vec::new();
    for call in calls.iter().filter(|c| leaf(c)) {
        let above = call.layer.match_indices('.').map(|(i, _)| &call.layer[..i]);
        let block = above.filter(|b| side.layer(b).is_some()).find(|b| of(b, true) == 0 && of(b, false) > 1);
        if let Some(block) = block.filter(|b| !found.iter().any(|f| f == b)) {
            found.push(block.to_string());
        }
    }
    found
}

fn in_words(side: &Structure, block: &str) -> String {
    let class = side.layer(block).map_or("", |l| l.class.as_str());
    let within: Vec<&str> = side
        .calls
        .iter()
        .filter(|c| !c.function && !c.container && inside(&c.layer, block))
        .map(|c| c.op.as_str())
        .collect();
    let rest = if within.len() > 6 { format!(" and {} more", within.len() - 6) } else { String::new() };
    format!("{block} ({class}: {}{rest})", within[..within.len().min(6)].join(", "))
}

/// The blocks among the calls between two layers that only one side has.
pub(crate) fn between(cx: &Context<'_>, calls_a: &[&Call], calls_b: &[&Call]) -> Option<Block> {
    let paired = |first: bool| -> HashSet<usize> {
        cx.pairing.calls.iter().map(|p| if first { p.reference } else { p.candidate }).collect()
    };
    let ours = alone(&cx.a.structure, &paired(true), calls_a);
    let theirs = alone(&cx.b.structure, &paired(false), calls_b);
    let (side, names, extra) = match (&ours[..], &theirs[..]) {
        ([], [_, ..]) => (&cx.b.structure, &theirs, true),
        ([_, ..], []) => (&cx.a.structure, &ours, false),
        _ => return None,
    };
    let (one, other) = if extra { ("candidate", "reference") } else { ("reference", "candidate") };
    let count = if names.len() == 1 { "one more block".to_string() } else { format!("{} more blocks", names.len()) };
    let shown: Vec<String> = names.iter().map(|n| in_words(side, n)).collect();
    let sentence = format!("the {one} has {count} than the {other}: {}", shown.join(", "));
    let word = if extra { "block_extra" } else { "block_missing" };
    Some(Block { name: names[0].clone(), extra, cause: Cause::new(word, sentence, true) })
}
