//! Prints every public name of the registries, one a line: `module.name`, in-place forms and other names included.

use sampan_core::{function, op};

fn print(module: &str, name: &str, also: &[&str], inplace: bool) {
    for name in std::iter::once(name).chain(also.iter().copied()) {
        let full = if name.contains('.') || module.is_empty() { name.to_string() } else { format!("{module}.{name}") };
        println!("{full}");
        if inplace {
            println!("{full}_");
        }
    }
}

fn main() {
    op::all().iter().for_each(|op| print(op.module, op.name, op.also, op.inplace));
    function::all().iter().for_each(|f| print(f.module, f.name, f.also, false));
}
