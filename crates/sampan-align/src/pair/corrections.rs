//! What the user says about the pairs: a few lines such as `features.0 = stem.conv`.

use crate::Structure;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};

/// Pairs that the user decided. A line is `reference = candidate`, where a name is a layer (with all that is in it) or a
/// parameter; `name = -` and `- = name` say that there is no partner; `#` begins a remark.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    pairs: Vec<(String, String)>,
}

fn within<'n>(name: &'n str, owner: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(owner)?;
    (rest.is_empty() || owner.is_empty() || rest.starts_with('.')).then(|| rest.trim_start_matches('.'))
}

fn join(owner: &str, rest: &str) -> String {
    if rest.is_empty() || owner.is_empty() { format!("{owner}{rest}") } else { format!("{owner}.{rest}") }
}

impl Corrections {
    /// Reads lines of corrections.
    ///
    /// ```
    /// use sampan_align::Corrections;
    /// let map = Corrections::parse("fc1 = head.0   # the head\naux = -\n")?;
    /// assert_eq!(map.candidate("fc1.weight"), Some(Some("head.0.weight".to_string())));
    /// assert_eq!(map.candidate("aux.fc"), Some(None));
    /// assert!(Corrections::parse("fc1 -> head").is_err());
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Corrections> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let fault = |what: &str| {
                Error::new(Kind::InvalidArgument, format!("line {} of the map, {line:?}, {what}", number + 1))
                    .hint("a line is `layer of the reference = layer of the candidate`; `-` stands for none")
                    .in_op("align")
            };
            let (a, b) = line.split_once('=').ok_or_else(|| fault("has no `=`"))?;
            let clean = |s: &str| s.trim().trim_matches(['"', '\'']).replace("(root)", "");
            let (a, b) = (clean(a), clean(b));
            if b.contains('=') || (a == "-" && b == "-") {
                return Err(fault("does not name two layers"));
            }
            if a != "-" && pairs.iter().any(|p| p.0 == a) {
                return Err(fault("names a layer of the reference for the second time"));
            }
            pairs.push((a, b));
        }
        Ok(Corrections { pairs })
    }

    /// Fails with a sentence if a line names what is not there.
    pub(crate) fn check(&self, reference: &Structure, candidate: &Structure) -> Result<()> {
        for (name, side, which) in self
            .pairs
            .iter()
            .flat_map(|(a, b)| [(a, reference, "reference"), (b, candidate, "candidate")])
            .filter(|(n, ..)| *n != "-")
        {
            let known = side.layers.iter().any(|l| within(&l.name, name).is_some())
                || side.parameters().any(|p| p.name == *name)
                || side.calls.iter().any(|c| c.key == *name);
            if !known {
                let near = nearest(name, side);
                return Err(Error::new(
                    Kind::NotFound,
                    format!("the map names {name:?}, and the {which} has no such layer"),
                )
                .hint(near.map_or("the pairing's table lists the names".into(), |n| format!("did you mean {n:?}?")))
                .in_op("align"));
            }
        }
        Ok(())
    }

    /// The partner that the user gave to a layer or parameter of the reference: none given, none at all, or its name.
    pub fn candidate(&self, reference: &str) -> Option<Option<String>> {
        let found = |(a, b): &(String, String)| within(reference, a).map(|rest| (a.len(), b.clone(), rest.to_string()));
        let (_, b, rest) = self.pairs.iter().filter(|p| p.0 != "-").filter_map(found).max_by_key(|(len, ..)| *len)?;
        Some((b != "-").then(|| join(&b, &rest)))
    }

    /// The other way round.
    pub fn reference(&self, candidate: &str) -> Option<Option<String>> {
        let found = |(a, b): &(String, String)| within(candidate, b).map(|rest| (b.len(), a.clone(), rest.to_string()));
        let (_, a, rest) = self.pairs.iter().filter(|p| p.1 != "-").filter_map(found).max_by_key(|(len, ..)| *len)?;
        Some((a != "-").then(|| join(&a, &rest)))
    }
}

fn nearest(name: &str, side: &Structure) -> Option<String> {
    let score = |other: &str| super::sequence::name_likeness(name, other);
    let best = side.layers.iter().map(|l| &l.name).max_by(|x, y| score(x).total_cmp(&score(y)))?;
    (score(best) > 0.5).then(|| best.clone())
}
