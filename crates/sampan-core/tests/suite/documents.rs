//! The documents show code that exists.

use std::path::Path;

#[test]
fn the_examples_of_adding_an_op_stand_in_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let ops = std::fs::read_dir(root.join("src/ops")).expect("the folder of ops");
    let sources: Vec<String> = ops.map(|file| read(&file.expect("a file").path())).collect();
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
