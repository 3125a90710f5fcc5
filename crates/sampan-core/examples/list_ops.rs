//! Prints every public name of the registry, one a line: `module.name`, in-place forms and other names included.

use sampan_core::op;

fn main() {
    for op in op::all() {
        let names = std::iter::once(op.name).chain(op.also.iter().copied());
        for name in names {
            let full = if name.contains('.') || op.module.is_empty() {
                name.to_string()
            } else {
                format!("{}.{name}", op.module)
            };
            println!("{full}");
            if op.inplace {
                println!("{full}_");
            }
        }
    }
}
