//! The documents show code that exists.

use std::path::{Path, PathBuf};

/// The files below a folder with one of these endings. Tests, what is built, and the tables of what layers are called in
/// other frameworks (`sampan-align`) are left out.
fn sources(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() && !matches!(name, "tests" | "target" | "golden" | "benches" | "sampan-align") {
            sources(&path, endings, found);
        } else if endings.iter().any(|e| name.ends_with(e)) {
            found.push(path);
        }
    }
}

#[test]
fn an_op_is_named_where_the_document_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut files = Vec::new();
    for folder in ["crates", "python/src", "python/sampan"] {
        sources(&root.join(folder), &[".rs", ".py"], &mut files);
    }
    let texts: Vec<(PathBuf, String)> = files.into_iter().map(|path| (path.clone(), read(&path))).collect();
    let names = |text: &str, op: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == op);
    let document = read(&root.join("docs/adding-an-op.md"));
    let rows: Vec<Vec<&str>> = document
        .lines()
        .skip_while(|line| !line.starts_with("| kind |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('`').skip(1).step_by(2).collect())
        .collect();
    assert!(rows.len() >= 4, "composed, elementwise, activation and heavy");
    for row in rows {
        let (op, mut said) = (row[0], row[1..].to_vec());
        let found = texts.iter().filter(|(_, text)| names(text, op)).map(|(path, _)| path);
        let below = root.join("crates");
        let mut found: Vec<_> = found.map(|p| p.strip_prefix(&below).unwrap_or(p).display().to_string()).collect();
        found.sort();
        said.sort();
        assert_eq!(found, said, "{op}");
    }
}

#[test]
fn the_examples_of_adding_an_op_stand_in_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut files = Vec::new();
    sources(&root.join("src/ops"), &[".rs"], &mut files);
    let sources: Vec<String> = files.iter().map(|file| read(file)).collect();
    let document = read(&root.join("../../docs/adding-an-op.md"));
    // A fence inside a documentation comment does not begin its line.
    let blocks: Vec<&str> = document
        .split("\n```rust")
        .skip(1)
        .filter_map(|text| text.split_once('\n')?.1.split("\n```\n").next())
        .collect();
    assert!(blocks.len() >= 3, "composed, elementwise and heavy");
    for block in blocks {
        assert!(sources.iter().any(|s| s.contains(block)), "no longer in the sources:\n{block}");
    }
}
