//! `cargo xtask cycles`: import cycles between the top-level modules of each crate. Test code does not count.
//!
//! A module imports another one by a path from `crate` or `super`, also through a re-export of the crate root.

mod imports;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::run::root;
use imports::{CrateRoot, imported_modules};
pub(crate) use source::without_tests;

/// Cycles that remain, with the reason: the crate, the modules in alphabetical order, and why they belong together.
const REMAINING_CYCLES: [(&str, &[&str], &str); 0] = [];

/// Imports between the modules of a crate: importer, imported module, and the importing files.
type ImportGraph = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Checks all crates.
///
/// # Errors
/// There is a cycle that [`REMAINING_CYCLES`] does not have, or that list has one that does not exist.
pub(crate) fn check() -> Result<(), String> {
    let folder = root().join("crates");
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| error.to_string())? {
        let crate_folder = entry.map_err(|error| error.to_string())?.path();
        let name = crate_folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let src = crate_folder.join("src");
        if src.is_dir() {
            let graph = read_crate(&src)?;
            found.extend(
                cycles(&graph)
                    .into_iter()
                    .map(|cycle| (name.clone(), cycle, graph.clone())),
            );
        }
    }
    let remaining = |name: &str, cycle: &[String]| {
        let same =
            |(of, modules, _): &&(&str, &[&str], &str)| *of == name && modules.iter().eq(cycle);
        REMAINING_CYCLES.iter().any(|remaining| same(&remaining))
    };
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|(name, cycle, _)| !remaining(name, cycle))
        .map(|(name, cycle, graph)| describe(name, cycle, graph))
        .collect();
    for (of, modules, _) in REMAINING_CYCLES {
        if !found
            .iter()
            .any(|(name, cycle, _)| name == of && modules.iter().eq(cycle))
        {
            wrong.push(format!(
                "{of}: {} is no cycle any more; remove it from REMAINING_CYCLES",
                modules.join(", ")
            ));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

fn read_crate(src: &Path) -> Result<ImportGraph, String> {
    let text =
        ["lib.rs", "main.rs"].map(|name| fs::read_to_string(src.join(name)).unwrap_or_default());
    let crate_root = CrateRoot::read(&text.map(|text| without_tests(&text)).join("\n"));
    let mut graph = ImportGraph::new();
    read_folder(src, &mut Vec::new(), &crate_root, &mut graph)?;
    Ok(graph)
}

/// Adds the imports of the files of a folder. `within` is the path of its module.
fn read_folder(
    folder: &Path,
    within: &mut Vec<String>,
    crate_root: &CrateRoot,
    graph: &mut ImportGraph,
) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if stem == "tests" || (within.is_empty() && !crate_root.has_module(&stem)) {
            continue;
        }
        if path.is_dir() {
            within.push(stem);
            read_folder(&path, within, crate_root, graph)?;
            within.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let depth = within.len() + usize::from(stem != "mod");
            let module = within.first().unwrap_or(&stem);
            let text = without_tests(&fs::read_to_string(&path).map_err(wrong)?);
            let file = path
                .strip_prefix(root())
                .unwrap_or(&path)
                .display()
                .to_string();
            let known = graph.entry(module.clone()).or_default();
            for imported in imported_modules(&text, depth, crate_root) {
                if imported != *module {
                    known.entry(imported).or_default().insert(file.clone());
                }
            }
        }
    }
    Ok(())
}

/// Returns the groups of modules that import each other, each in alphabetical order.
fn cycles(graph: &ImportGraph) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let is_mutual = |one: &String, two: &String| {
        reach.get(one).is_some_and(|reach| reach.contains(two))
            && reach.get(two).is_some_and(|reach| reach.contains(one))
    };
    graph
        .keys()
        .map(|one| {
            graph
                .keys()
                .filter(|two| is_mutual(one, two))
                .cloned()
                .collect::<Vec<_>>()
        })
        .filter(|group| group.len() > 1)
        .collect()
}

fn reachable<'a>(graph: &'a ImportGraph, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = graph
        .get(from)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(graph.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

fn describe(name: &str, cycle: &[String], graph: &ImportGraph) -> String {
    let mut text = format!("{name}: the modules {} import each other", cycle.join(", "));
    for (importer, imported) in graph
        .iter()
        .filter(|(importer, _)| cycle.contains(importer))
    {
        for (module, files) in imported.iter().filter(|(module, _)| cycle.contains(module)) {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            text += &format!("\n  {importer} -> {module}: {}", files.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(imports: &[(&str, &str)]) -> ImportGraph {
        let mut graph = ImportGraph::new();
        for (importer, imported) in imports {
            graph.entry((*imported).to_owned()).or_default();
            let known = graph.entry((*importer).to_owned()).or_default();
            known
                .entry((*imported).to_owned())
                .or_default()
                .insert("a.rs".to_owned());
        }
        graph
    }

    #[test]
    fn finds_a_cycle_of_three_and_leaves_out_those_that_only_import_it() {
        let graph = graph(&[
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("top", "a"),
            ("c", "bottom"),
        ]);
        let found: Vec<Vec<String>> = cycles(&graph).into_iter().collect();
        assert_eq!(found, [["a", "b", "c"]]);
        let text = describe("one", &found[0], &graph);
        assert!(
            text.contains("c -> a: a.rs") && !text.contains("top"),
            "{text}"
        );
    }

    #[test]
    fn layers_are_no_cycle() {
        assert!(cycles(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])).is_empty());
    }

    /// A check that read no imports would accept everything.
    #[test]
    fn reads_the_imports_of_the_gateway() {
        let graph = read_crate(&root().join("crates/toolgate-cli/src")).unwrap();
        assert!(graph["serve"].contains_key("runtime"));
        assert!(graph["cli"].contains_key("serve"));
        assert!(!graph.contains_key("unprinted"), "test code does not count");
    }
}
