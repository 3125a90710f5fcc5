//! A few lines that correct the pairing.
//!
//! ```text
//! # layers or keys; a star is any text, and stands for the same text on the right
//! encoder.*.attn.qkv = blocks.*.attention.qkv
//! head.* = -                 # a source that is not wanted
//! - = aux.*                  # a target that keeps its own values
//! transpose proj.weight      # a square matrix that is to be turned …
//! plain table.weight         # … or not
//! ```

use sampan_core::{Error, Result};
use std::cell::Cell;

#[derive(Debug)]
enum Rule {
    Rename(String, String),
    Drop(String),
    Leave(String),
    Turn(String, bool),
}

/// What a mapping file says.
#[derive(Debug, Default)]
pub struct Mapping {
    rules: Vec<(usize, Rule, Cell<bool>)>,
}

/// What the stars of a pattern stand for, if the whole text or a beginning that ends at a dot fits; and what follows.
fn stars<'t>(pattern: &str, text: &'t str) -> Option<(Vec<&'t str>, &'t str)> {
    match pattern.split_once('*') {
        None if text == pattern => Some((Vec::new(), "")),
        None => text.strip_prefix(pattern).filter(|rest| rest.starts_with('.')).map(|rest| (Vec::new(), rest)),
        Some((start, rest)) => {
            let text = text.strip_prefix(start)?;
            let ends = text.char_indices().map(|(i, _)| i).chain([text.len()]);
            ends.into_iter().find_map(|end| {
                let (mut found, after) = stars(rest, &text[end..])?;
                found.insert(0, &text[..end]);
                Some((found, after))
            })
        }
    }
}

impl Mapping {
    /// Reads the lines of a mapping file.
    pub fn parse(text: &str) -> Result<Mapping> {
        let mut mapping = Mapping::default();
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let word =
                |word: &str| line.strip_prefix(word).filter(|rest| rest.starts_with(' ')).map(|r| r.trim().to_string());
            let rule = if line.is_empty() {
                continue;
            } else if let Some((source, target)) = line.split_once('=') {
                let (source, target) = (source.trim().to_string(), target.trim().to_string());
                let stars = |key: &str| key.matches('*').count();
                let fault = |what: &str| Error::invalid(format!("line {} of the mapping, {line:?}: {what}", i + 1));
                match (source.as_str(), target.as_str()) {
                    ("", _) | (_, "") | ("-", "-") => return Err(fault("a name is missing")),
                    ("-", _) => {
                        mapping.rules.push((i + 1, Rule::Leave(target), Cell::new(false)));
                        continue;
                    }
                    (_, "-") => {
                        mapping.rules.push((i + 1, Rule::Drop(source), Cell::new(false)));
                        continue;
                    }
                    _ if stars(&source) != stars(&target) => {
                        return Err(fault("each star needs one on the other side"));
                    }
                    _ => {}
                }
                // Layers are paired, so a key is its layer where both sides end alike.
                let cut = |key: &str| -> Option<String> {
                    let (layer, leaf) = key.rsplit_once('.')?;
                    matches!(leaf, "weight" | "bias").then(|| layer.to_string())
                };
                match (cut(&source), cut(&target)) {
                    (Some(source), Some(target)) => Rule::Rename(source, target),
                    _ => Rule::Rename(source, target),
                }
            } else if let Some(key) = word("transpose") {
                Rule::Turn(key, true)
            } else if let Some(key) = word("plain") {
                Rule::Turn(key, false)
            } else {
                return Err(Error::invalid(format!("line {} of the mapping says {line:?}", i + 1))
                    .hint("a line is SOURCE = TARGET, SOURCE = -, - = TARGET, transpose KEY or plain KEY"));
            };
            mapping.rules.push((i + 1, rule, Cell::new(false)));
        }
        Ok(mapping)
    }

    fn first<T>(&self, take: impl Fn(&Rule) -> Option<T>) -> Option<T> {
        self.rules.iter().find_map(|(_, rule, used)| take(rule).inspect(|_| used.set(true)))
    }

    /// The target that a source is sent to.
    pub(super) fn rename(&self, path: &str) -> Option<String> {
        self.first(|rule| {
            let Rule::Rename(source, target) = rule else { return None };
            let (found, rest) = stars(source, path)?;
            let mut found = found.into_iter();
            let renamed: String = target
                .chars()
                .map(|c| if c == '*' { found.next().unwrap_or_default().to_string() } else { c.to_string() })
                .collect();
            Some(renamed + rest)
        })
    }

    pub(super) fn drops(&self, path: &str) -> bool {
        self.first(|rule| matches!(rule, Rule::Drop(key) if stars(key, path).is_some()).then_some(())).is_some()
    }

    pub(super) fn leaves(&self, path: &str) -> bool {
        self.first(|rule| matches!(rule, Rule::Leave(key) if stars(key, path).is_some()).then_some(())).is_some()
    }

    /// Is a matrix to be turned?
    pub(super) fn turns(&self, key: &str) -> Option<bool> {
        self.first(|rule| match rule {
            Rule::Turn(pattern, turn) => stars(pattern, key).map(|_| *turn),
            _ => None,
        })
    }

    /// The lines that fit nothing: a name in them is misspelt.
    pub(super) fn unused(&self) -> Vec<usize> {
        self.rules.iter().filter(|(_, _, used)| !used.get()).map(|(line, ..)| *line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_the_same_text() {
        let mapping = Mapping::parse("blocks.*.attn = layers.*.attention\nfc = head # the last one\n").unwrap();
        assert_eq!(mapping.rename("blocks.11.attn.qkv").as_deref(), Some("layers.11.attention.qkv"));
        assert_eq!(mapping.rename("fc").as_deref(), Some("head"));
        assert_eq!(mapping.rename("fc2"), None);
        assert!(mapping.unused().is_empty());
    }

    #[test]
    fn what_is_no_rule_is_an_error() {
        for bad in ["fc head", "a.* = b", "fc -> head", "- = -"] {
            assert!(Mapping::parse(bad).is_err(), "{bad}");
        }
    }
}
