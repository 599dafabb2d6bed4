//! Skills: folders of instructions for a model, served as resources.
//!
//! Source: the extension `io.modelcontextprotocol/skills`, and the Agent Skills format for the contents of the folder.

use super::{BuildError, ResourceContents};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};
use toolgate_core::{CacheHint, Definition, ItemKind, Json, ReadResult};
use toolgate_protocol::{
    hex,
    json::ObjectWriter,
    method::skills::{self, FILE, MAX_SKILL_BYTES, MAX_SKILL_FILES, SkillFile},
};

/// Maximum nesting depth of directories in a skill.
const MAX_DIRECTORY_DEPTH: usize = 16;

/// Skill: a folder with a `SKILL.md` (instructions for a model), whose frontmatter has its name and description, and
/// with other files that it needs. All files are read once, when the value is created; the digests and sizes are those
/// of the bytes that were read.
///
/// ```
/// use toolgate::{Server, handlers::Skill};
///
/// let text = "---\nname: refunds\ndescription: How to refund an order\n---\n\nRead `terms.md` first.\n";
/// let refunds = Skill::new(text).file("terms.md", "Within 30 days.");
/// let server = Server::new("shop", "1.0.0").skill(refunds);
/// # assert!(server.build().is_ok());
/// ```
#[derive(Clone)]
pub struct Skill {
    under: String,
    /// Files by path within the skill.
    files: Vec<(String, Vec<u8>)>,
    hint: CacheHint,
    fault: Option<String>,
    root: String,
    frontmatter: Value,
}

impl Skill {
    /// Creates a skill from the text of its `SKILL.md`. Its URI is `skill://NAME/SKILL.md`, with the name in its
    /// frontmatter.
    pub fn new(text: impl Into<Vec<u8>>) -> Skill {
        let text = text.into();
        let head = std::str::from_utf8(&text)
            .map_err(|_| "its SKILL.md is not UTF-8 text")
            .and_then(skills::read_frontmatter);
        let (head, wrong) = match head {
            Ok(head) => (head, None),
            Err(why) => (Value::Null, Some(why.to_owned())),
        };
        let mut skill = Skill {
            under: String::new(),
            files: vec![(FILE.to_owned(), text)],
            hint: CacheHint::default(),
            fault: wrong,
            root: String::new(),
            frontmatter: head,
        };
        skill.update_root();
        skill
    }

    /// Reads a skill from a directory: all files in it, except those whose names begin with a dot.
    ///
    /// ```no_run
    /// use toolgate::{Server, handlers::Skill};
    ///
    /// let refunds = Skill::in_folder("skills/refunds")?.under("shop");
    /// let server = Server::new("shop", "1.0.0").skill(refunds); // skill://shop/refunds/SKILL.md
    /// # drop(server);
    /// # Ok::<(), toolgate::handlers::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// - A file cannot be read, or `SKILL.md` is missing.
    /// - An entry is a link or another special file.
    /// - The skill has more than 512 files or 16 MiB, or directories nested deeper than 16.
    /// - Its name differs from that of the directory.
    pub fn in_folder(directory: impl AsRef<Path>) -> Result<Skill, BuildError> {
        let directory = directory.as_ref();
        let what = || format!("the skill in {}", directory.display());
        let bad = |why: String| BuildError::new(what(), why);
        let mut found = SkillDirectory::default();
        found.walk(directory, "", 0).map_err(bad)?;
        let text = found.files.iter().position(|(path, _)| path == FILE);
        let Some(at) = text else {
            return Err(bad("it has no SKILL.md; create one".to_owned()));
        };
        let (_, text) = found.files.swap_remove(at);
        let mut skill = Skill::new(text);
        found.files.sort();
        skill.files.extend(found.files);
        let own = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        if skill.fault.is_none() && own.file_name().is_some_and(|name| name != skill.name()) {
            return Err(bad(format!(
                "its name is {:?}, which differs from that of the directory; rename one of the two",
                skill.name()
            )));
        }
        Ok(skill)
    }

    /// Reads all skills in a directory, sorted by URI. Each is a subdirectory that contains a `SKILL.md`.
    ///
    /// # Errors
    /// As [`Skill::in_folder`]; a single invalid skill fails the whole operation.
    pub fn all_in(directory: impl AsRef<Path>) -> Result<Vec<Skill>, BuildError> {
        let directory = directory.as_ref();
        let bad = |error: io::Error| {
            BuildError::new(
                format!("the skills in {}", directory.display()),
                format!(
                    "the directory cannot be read: {error}; check the path and its permissions"
                ),
            )
        };
        let mut skills = Vec::new();
        for entry in fs::read_dir(directory).map_err(bad)? {
            let path = entry.map_err(bad)?.path();
            if fs::symlink_metadata(path.join(FILE)).is_ok() {
                let meta = fs::symlink_metadata(&path).map_err(bad)?;
                if !meta.is_dir() {
                    let what = format!("the skill in {}", path.display());
                    return Err(BuildError::new(
                        what,
                        "it is a symbolic link, which is not followed; use a real directory",
                    ));
                }
                skills.push(Skill::in_folder(path)?);
            }
        }
        skills.sort_by(|one, two| one.root.cmp(&two.root));
        Ok(skills)
    }

    /// Adds a file to the skill, by its path within the skill, for example `references/terms.md`.
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Skill {
        self.files.push((path.to_owned(), bytes.into()));
        self
    }

    /// Sets a prefix of the skill's URI: it is served at `skill://PREFIX/NAME/SKILL.md`.
    pub fn under(mut self, prefix: &str) -> Skill {
        self.under = prefix.trim_matches('/').to_owned();
        self.update_root();
        self
    }

    /// Sets the cache hint of the skill's files: the time to live in milliseconds, and whether caches may share them
    /// between callers.
    pub fn cache(mut self, ttl_ms: u64, public: bool) -> Skill {
        self.hint = CacheHint { ttl_ms, public };
        self
    }

    /// Returns the skill's name from the frontmatter of its `SKILL.md`.
    pub fn name(&self) -> &str {
        self.frontmatter
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the URI of the skill's `SKILL.md`.
    pub fn uri(&self) -> String {
        format!("{}/{FILE}", self.root)
    }

    fn update_root(&mut self) {
        let (name, under) = (self.name(), &self.under);
        self.root = match under.is_empty() {
            true => format!("skill://{name}"),
            false => format!("skill://{under}/{name}"),
        };
    }

    fn file_uri(&self, path: &str) -> String {
        let mut uri = format!("{}/", self.root);
        for byte in path.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    uri.push(char::from(byte));
                }
                other => uri.push_str(&format!("%{other:02X}")),
            }
        }
        uri
    }

    /// Returns the entry for the list of skills.
    pub(super) fn definition(&self) -> Result<Definition, String> {
        if let Some(wrong) = &self.fault {
            return Err(wrong.clone());
        }
        let files = self.files.iter().map(|(path, bytes)| SkillFile {
            uri: self.file_uri(path),
            digest: hex::encode(digest(&SHA256, bytes).as_ref()),
            size: bytes.len() as u64,
        });
        let files: Vec<SkillFile> = files.collect();
        let entry = skills::entry(&self.uri(), &Json::from_value(&self.frontmatter), &files);
        Definition::read(ItemKind::Skill, entry).map_err(str::to_owned)
    }

    /// Returns the definition of its `SKILL.md` as a resource.
    pub(super) fn resource(&self) -> Result<Definition, String> {
        let mut o = ObjectWriter::new();
        o.str("uri", &self.uri());
        o.str("name", self.name());
        let text = self.frontmatter.get("description").and_then(Value::as_str);
        o.str("description", text.unwrap_or_default());
        o.str("mimeType", "text/markdown");
        let size = self.files.first().map_or(0, |(_, bytes)| bytes.len());
        o.int("size", i64::try_from(size).unwrap_or(i64::MAX));
        Definition::read(ItemKind::Resource, o.finish()).map_err(str::to_owned)
    }

    /// Returns the file at a URI.
    pub(super) fn read(&self, uri: &str) -> Option<ReadResult> {
        if !uri.starts_with(&self.root) {
            return None;
        }
        let mut files = self.files.iter();
        let (_, bytes) = files.find(|(path, _)| self.file_uri(path) == uri)?;
        let media = skills::media_type(uri);
        let contents = match std::str::from_utf8(bytes) {
            Ok(text) => ResourceContents::text(text).json(uri, media.or(Some("text/plain"))),
            Err(_) => ResourceContents::bytes(bytes.clone())
                .json(uri, media.or(Some("application/octet-stream"))),
        };
        Some(ReadResult {
            contents: vec![contents],
            hint: self.hint,
            meta: None,
        })
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Skill({}, {} files)", self.root, self.files.len())
    }
}

/// Files found in a directory.
#[derive(Default)]
struct SkillDirectory {
    files: Vec<(String, Vec<u8>)>,
    bytes: u64,
}

impl SkillDirectory {
    fn walk(&mut self, folder: &Path, within: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DIRECTORY_DEPTH {
            return Err(format!(
                "its directories are nested more than {MAX_DIRECTORY_DEPTH} deep"
            ));
        }
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .ok_or("the name of one of its files is not UTF-8")?;
            if name.starts_with('.') {
                continue;
            }
            let path = match within {
                "" => name.to_owned(),
                within => format!("{within}/{name}"),
            };
            // Type of the entry itself: the target of a link may be anywhere.
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path, depth + 1)?;
            } else if kind.is_file() {
                self.add_file(&entry.path(), path)?;
            } else {
                return Err(format!(
                    "{path} is a link or special file; only regular files are read"
                ));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, from: &Path, path: String) -> Result<(), String> {
        if self.files.len() == MAX_SKILL_FILES {
            return Err(format!(
                "it has more than {MAX_SKILL_FILES} files; split the skill"
            ));
        }
        let left = MAX_SKILL_BYTES - self.bytes;
        let mut bytes = Vec::new();
        let read = File::open(from).and_then(|file| file.take(left + 1).read_to_end(&mut bytes));
        read.map_err(|error| format!("{path} cannot be read: {error}"))?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_SKILL_BYTES {
            return Err("its files are larger than 16 MiB in total; split the skill".to_owned());
        }
        self.files.push((path, bytes));
        Ok(())
    }
}
