//! Skills: folders of instructions for models, served as resources.
//!
//! Source: the extension `io.modelcontextprotocol/skills`, SEP-2640; revision 2026-07-28 and later.

#[cfg(feature = "skills")]
mod frontmatter;
#[cfg(not(feature = "skills"))]
mod no_frontmatter;

#[cfg(feature = "skills")]
pub use frontmatter::{equal_values, read_frontmatter};
#[cfg(not(feature = "skills"))]
pub use no_frontmatter::{equal_values, read_frontmatter};

use super::definition::{Definition, ItemKind};
use crate::json::{ArrayWriter, Json, JsonKind, ObjectWriter};

/// Identifier of the MCP extension for skills.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Setting of the skills extension that declares support for `resources/directory/read`.
pub const READS_DIRECTORIES: &str = "directoryRead";
/// Method name `skills/get`, which returns the entry of one skill.
pub const GET: &str = "skills/get";
/// Method name `resources/directory/read`, which lists the children of a skill's directory.
pub const DIRECTORY: &str = "resources/directory/read";
/// Media type of a directory among resources.
pub const DIRECTORY_TYPE: &str = "inode/directory";
/// Name of the file that makes a folder a skill, `SKILL.md`.
pub const FILE: &str = "SKILL.md";
/// Maximum number of files in a skill.
pub const MAX_SKILL_FILES: usize = 512;
/// Maximum total size of a skill's files, in bytes.
pub const MAX_SKILL_BYTES: u64 = 16 << 20;

const DIGEST: &str = "sha256:";
const DYNAMIC: &str = "dynamic";

/// File of a skill: URI, digest and size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkillFile {
    /// URI of the skill's file.
    pub uri: String,
    /// SHA-256 digest of the file, 64 hexadecimal digits.
    pub digest: String,
    /// Size of the file in bytes.
    pub size: u64,
}

/// List of a skill's files with digests and sizes, as the skill's definition states it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkillManifest {
    /// URI of the skill's folder, without a trailing slash.
    pub root: String,
    /// Files of the skill by URI; `None` for files that are generated on read, without stated digests.
    pub files: Option<Vec<SkillFile>>,
}

impl SkillManifest {
    /// Reads the manifest from the definition of a skill; `None` if it is not a skill.
    pub fn of(def: &Definition) -> Option<SkillManifest> {
        match def.kind() {
            ItemKind::Skill => read(def.json()).ok(),
            _ => None,
        }
    }

    /// Returns the skill's file at a URI, if the manifest states it.
    pub fn file(&self, uri: &str) -> Option<&SkillFile> {
        let files = self.files.as_ref()?;
        let at = files.binary_search_by(|file| file.uri.as_str().cmp(uri));
        files.get(at.ok()?)
    }

    /// Returns true if a URI belongs to the skill: a stated file or, without stated files, any URI in its folder.
    pub fn contains(&self, uri: &str) -> bool {
        match &self.files {
            Some(_) => self.file(uri).is_some(),
            None => is_within(&self.root, uri),
        }
    }
}

/// Returns true for a valid skill name: 1 to 64 of `a-z`, `0-9` and single inner hyphens.
pub fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| plain(b) || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Reads the manifest of an entry and validates all of it.
pub(super) fn read(json: &Json) -> Result<SkillManifest, &'static str> {
    let uri = json.get("uri").and_then(|uri| uri.string());
    let uri = uri.ok_or("the \"uri\" of the skill is missing or not a string")?;
    let head = json
        .get("frontmatter")
        .filter(|h| h.kind() == JsonKind::Object)
        .ok_or("\"frontmatter\" is missing or not an object")?;
    let word = |key: &str| {
        head.get(key)
            .and_then(|v| v.string())
            .filter(|w| !w.is_empty())
    };
    let (Some(name), Some(_)) = (word("name"), word("description")) else {
        return Err("\"frontmatter\" lacks a \"name\" or a \"description\"");
    };
    let root = uri
        .strip_suffix(FILE)
        .and_then(|root| root.strip_suffix('/'));
    let root = root.ok_or("the \"uri\" of the skill does not end in /SKILL.md")?;
    if !is_name(&name) {
        return Err(
            "the name of the skill is invalid: use 1 to 64 lower-case letters, digits and hyphens, with no hyphen at the start or end and no two in a row",
        );
    }
    if !root.contains("://") {
        return Err("the \"uri\" of the skill has no :// after its scheme");
    }
    if root.rsplit('/').next() != Some(&name) {
        return Err(
            "the last folder in the \"uri\" of the skill differs from the name of the skill",
        );
    }
    let resources = json.get("resources").ok_or("\"resources\" is missing")?;
    if resources.string().as_deref() == Some(DYNAMIC) {
        return Ok(SkillManifest {
            root: root.to_owned(),
            files: None,
        });
    }
    Ok(SkillManifest {
        files: Some(files(root, &uri, &resources)?),
        root: root.to_owned(),
    })
}

fn files(root: &str, own: &str, resources: &Json) -> Result<Vec<SkillFile>, &'static str> {
    if resources.kind() != JsonKind::Array {
        return Err("\"resources\" is neither an array nor \"dynamic\"");
    }
    let (mut files, mut bytes) = (Vec::new(), 0_u64);
    for one in resources.items() {
        if files.len() == MAX_SKILL_FILES {
            return Err(
                "\"resources\" lists more than 512 files, which is the limit of the skills extension",
            );
        }
        let file = file(&one)
            .ok_or("a file in \"resources\" lacks a valid \"uri\", \"digest\" or \"size\"")?;
        if !is_within(root, &file.uri) {
            return Err("a file in \"resources\" is outside the folder of the skill");
        }
        bytes = bytes.saturating_add(file.size);
        files.push(file);
    }
    if bytes > MAX_SKILL_BYTES {
        return Err(
            "the files in \"resources\" are larger than 16 MiB in total, which is the limit of the skills extension",
        );
    }
    files.sort_by(|one, two| one.uri.cmp(&two.uri));
    if files.windows(2).any(|pair| pair[0].uri == pair[1].uri) {
        return Err("\"resources\" lists a file twice");
    }
    if !files.iter().any(|file| file.uri == own) {
        return Err("\"resources\" does not list the SKILL.md of the skill");
    }
    Ok(files)
}

fn file(one: &Json) -> Option<SkillFile> {
    let digest = one.get("digest")?.string()?;
    let digest = digest.strip_prefix(DIGEST)?;
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let good = digest.len() == 64 && digest.bytes().all(hex);
    good.then_some(())?;
    Some(SkillFile {
        uri: one.get("uri")?.string()?,
        digest: digest.to_owned(),
        size: one.get("size")?.u64()?,
    })
}

/// Returns true for the URI of a file in a folder, without segments that lead elsewhere.
fn is_within(root: &str, uri: &str) -> bool {
    let rest = uri.strip_prefix(root).and_then(|r| r.strip_prefix('/'));
    rest.is_some_and(|rest| {
        let plain = rest.replace("%2e", ".").replace("%2E", ".");
        let leads_on = |step: &str| !matches!(step, "" | "." | "..");
        let whole = !rest.contains(['?', '#', '\\']) && !rest.contains("%2f");
        whole && !rest.contains("%2F") && !rest.contains("%5") && plain.split('/').all(leads_on)
    })
}

/// Writes the definition of a skill: URI, frontmatter and files.
pub fn entry(uri: &str, frontmatter: &Json, files: &[SkillFile]) -> Json {
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.raw("frontmatter", frontmatter);
    o.array("resources", |a| {
        for file in files {
            a.object(|f| {
                f.str("uri", &file.uri);
                f.str("digest", &format!("{DIGEST}{}", file.digest));
                f.int("size", i64::try_from(file.size).unwrap_or(i64::MAX));
            });
        }
    });
    o.finish()
}

/// Returns the definition of a skill with other URIs for itself and its files.
pub fn with_uris(def: &Definition, to: impl Fn(&str) -> String) -> Option<Definition> {
    let json = def.json();
    let renamed = |one: &Json| {
        let uri = one.get("uri")?.string()?;
        Some(one.with("uri", &Json::from_value(&to(&uri).into())))
    };
    let mut new = renamed(json)?;
    let resources = json.get("resources")?;
    if resources.kind() == JsonKind::Array {
        let mut files = ArrayWriter::new();
        for one in resources.items() {
            files.raw(&renamed(&one)?);
        }
        new = new.with("resources", &files.finish());
    }
    Definition::read(ItemKind::Skill, new).ok()
}

/// Lists a directory of a skill: the URI of each direct child, and true for subdirectories. `None` if no file is below
/// the directory.
pub fn children<'a>(
    directory: &str,
    files: impl Iterator<Item = &'a str>,
) -> Option<Vec<(String, bool)>> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for uri in files {
        let below = uri
            .strip_prefix(directory)
            .and_then(|r| r.strip_prefix('/'));
        let Some(rest) = below.filter(|rest| !rest.is_empty()) else {
            continue;
        };
        found.push(match rest.split_once('/') {
            Some((folder, _)) => (format!("{directory}/{folder}"), true),
            None => (uri.to_owned(), false),
        });
    }
    found.sort();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

/// Returns the media type of a skill's file, by its extension.
pub fn media_type(uri: &str) -> Option<&'static str> {
    let (_, end) = uri.rsplit('/').next()?.rsplit_once('.')?;
    Some(match end.to_ascii_lowercase().as_str() {
        "md" => "text/markdown",
        "txt" => "text/plain",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "csv" => "text/csv",
        "html" => "text/html",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "sh" => "application/x-sh",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn skill(change: impl FnOnce(&mut Value)) -> Result<Definition, &'static str> {
        let digest = format!("sha256:{}", "a".repeat(64));
        let mut def = json!({
            "uri": "skill://acme/pdf/SKILL.md",
            "frontmatter": {"name": "pdf", "description": "Reads forms"},
            "resources": [
                {"uri": "skill://acme/pdf/SKILL.md", "digest": digest, "size": 10},
                {"uri": "skill://acme/pdf/ref/a.md", "digest": digest, "size": 20},
            ],
        });
        change(&mut def);
        Definition::read(ItemKind::Skill, Json::from_value(&def))
    }

    #[test]
    fn an_entry_is_read_whole_or_not_at_all() {
        let good = SkillManifest::of(&skill(|_| {}).unwrap()).unwrap();
        assert_eq!(good.root, "skill://acme/pdf");
        assert!(
            good.contains("skill://acme/pdf/ref/a.md")
                && !good.contains("skill://acme/pdf/ref/b.md")
        );
        let dynamic = skill(|def| def["resources"] = "dynamic".into()).unwrap();
        let dynamic = SkillManifest::of(&dynamic).unwrap();
        assert!(
            dynamic.contains("skill://acme/pdf/x") && !dynamic.contains("skill://acme/pdf/../x")
        );
        for (at, wrong) in [
            ("/uri", json!("skill://acme/other/SKILL.md")),
            ("/uri", json!("skill://acme/pdf/skill.md")),
            ("/frontmatter/name", json!("Pdf")),
            ("/frontmatter/name", json!("pd--f")),
            ("/frontmatter/description", json!("")),
            ("/frontmatter/description", json!(1)),
            ("/resources", json!("static")),
            ("/resources", json!([])),
            ("/resources/0/digest", json!("sha256:AA")),
            ("/resources/0/size", json!(-1)),
            ("/resources/1/size", json!(MAX_SKILL_BYTES)),
            ("/resources/1/uri", json!("skill://acme/pdf/SKILL.md")),
            ("/resources/1/uri", json!("skill://acme/pdfs/a")),
            ("/resources/1/uri", json!("skill://acme/pdf/../a")),
            ("/resources/1/uri", json!("skill://acme/pdf/%2E%2e/a")),
            ("/resources/1/uri", json!("skill://acme/pdf//a")),
            ("/resources/1/uri", json!("skill://acme/pdf/a?b")),
        ] {
            let read = skill(|def| *def.pointer_mut(at).unwrap() = wrong.clone());
            assert!(read.is_err(), "{at} {wrong}");
        }
        let many = skill(|def| {
            let one = def["resources"][1].clone();
            let files = (0..MAX_SKILL_FILES).map(|n| {
                let mut one = one.clone();
                one["uri"] = format!("skill://acme/pdf/{n}").into();
                one
            });
            let files: Vec<Value> = files.collect();
            def["resources"].as_array_mut().unwrap().extend(files);
        });
        assert!(many.is_err(), "one file over");
    }

    #[test]
    fn an_entry_can_be_moved() {
        let to = |uri: &str| uri.replace("skill://", "skill://b/");
        let moved = with_uris(&skill(|_| {}).unwrap(), to).unwrap();
        assert_eq!(moved.name(), "skill://b/acme/pdf/SKILL.md");
        let files = SkillManifest::of(&moved).unwrap();
        assert!(files.contains("skill://b/acme/pdf/ref/a.md"));
    }

    #[test]
    fn a_directory_has_direct_children() {
        let files = [
            "s://a/SKILL.md",
            "s://a/t/1.md",
            "s://a/t/u/2.md",
            "s://ab/x",
        ];
        let of = |directory| children(directory, files.into_iter());
        let expected = [("s://a/SKILL.md", false), ("s://a/t", true)];
        let expected = expected.map(|(uri, is)| (uri.to_owned(), is));
        assert_eq!(of("s://a"), Some(expected.to_vec()));
        assert_eq!(of("s://a/SKILL.md"), None);
        assert_eq!(of("s://a/t/u/v"), None);
    }
}
