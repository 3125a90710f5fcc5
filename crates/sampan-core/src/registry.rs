//! How definitions are collected at link time and found by module and name: the registries of classes and functions.

/// Writes the registry of a definition that has `module` and `name`: `Entry`, `all` and `find`.
macro_rules! registry {
    ($def:ident) => {
        /// A definition as it is collected at link time.
        pub struct Entry(pub &'static $def);
        inventory::collect!(Entry);

        static REGISTRY: std::sync::LazyLock<std::collections::HashMap<(&'static str, &'static str), &'static $def>> =
            std::sync::LazyLock::new(|| {
                let mut map = std::collections::HashMap::new();
                for Entry(def) in inventory::iter::<Entry> {
                    let twice = map.insert((def.module, def.name), *def).is_some();
                    assert!(!twice, "two definitions are called {}.{}", def.module, def.name);
                }
                map
            });

        /// Every definition, sorted by module and name.
        pub fn all() -> Vec<&'static $def> {
            let mut all: Vec<_> = REGISTRY.values().copied().collect();
            all.sort_by_key(|def| (def.module, def.name));
            all
        }

        /// The definition of that module and name.
        pub fn find(module: &str, name: &str) -> Option<&'static $def> {
            REGISTRY.get(&(module, name)).copied()
        }
    };
}
pub(crate) use registry;
