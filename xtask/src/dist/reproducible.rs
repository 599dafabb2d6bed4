//! A second build in another directory, compared byte by byte.

use std::fs;

use super::{DistPlatform, DistRelease, artifacts, make};
use crate::run::target;

/// Builds the same commit from another clone into another directory, and compares all artifacts.
pub(super) fn verify(first: &DistRelease, platforms: &[&DistPlatform]) -> Result<(), String> {
    let work = target().join("dist-verify");
    // A clone of the clone, because the checkout may have another commit by now.
    let mut second = DistRelease::clone_head(
        &first.source,
        &work.join("another/place"),
        &work.join("output"),
    )?;
    second.profile.clone_from(&first.profile);
    let _ = fs::remove_dir_all(&second.build);
    make(&second, platforms)?;
    let names = artifacts(&first.output)?;
    if names != artifacts(&second.output)? {
        return Err("the builds have different files".to_owned());
    }
    let mut different = Vec::new();
    for name in &names {
        let bytes = |release: &DistRelease| {
            let file = release.output.join(name);
            fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
        };
        if bytes(first)? != bytes(&second)? {
            different.push(name.as_str());
        }
    }
    if !different.is_empty() {
        let places = format!("{} and {}", first.output.display(), second.output.display());
        return Err(format!(
            "different bytes in {places}: {}",
            different.join(", ")
        ));
    }
    println!("{} files have equal bytes in both builds", names.len());
    // A failure leaves both builds for comparison; equal ones are of no more use.
    fs::remove_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))
}
