//! The Markdown pages and the source files of the project.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::run::root;

/// Folders with pages or sources, beside the files at the root.
const FOLDERS: [&str; 8] = [
    "bench",
    "conformance",
    "crates",
    "docs",
    "fuzz",
    "interop",
    "spec",
    "xtask",
];
/// Folders with files of others, or with none in the repository.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "target", "corpus"];

/// A Markdown page.
pub(super) struct DocPage {
    /// Path from the root of the project, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl DocPage {
    /// Resolves a relative link of this page to a path from the root.
    pub(super) fn resolve(&self, target: &str) -> String {
        let folder = Path::new(&self.path).parent().unwrap_or(Path::new(""));
        let mut resolved = PathBuf::new();
        for part in folder.join(target).components() {
            match part {
                Component::ParentDir => {
                    resolved.pop();
                }
                Component::Normal(name) => resolved.push(name),
                _ => {}
            }
        }
        resolved.to_string_lossy().into_owned()
    }
}

/// Reads all pages of the project.
///
/// # Errors
/// A page cannot be read.
pub(super) fn all() -> Result<Vec<DocPage>, String> {
    let read = |path: String| match fs::read_to_string(root().join(&path)) {
        Ok(text) => Ok(DocPage { path, text }),
        Err(error) => Err(format!("cannot read {path}: {error}")),
    };
    files(".md")?.into_iter().map(read).collect()
}

/// Lists the files of the project that end so, by their paths from the root.
///
/// # Errors
/// A folder cannot be read.
pub(super) fn files(ending: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    list(&root(), false, ending, &mut found)?;
    for folder in FOLDERS {
        list(&root().join(folder), true, ending, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn list(folder: &Path, deep: bool, ending: &str, found: &mut Vec<String>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if deep && !SKIPPED_FOLDERS.contains(&name.as_ref()) {
                list(&path, deep, ending, found)?;
            }
        } else if name.ends_with(ending) {
            let path = path.strip_prefix(root()).unwrap_or(&path);
            found.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}
