//! Integrity of skills: files must match the manifest in their skill's entry, since skills steer a model.
//!
//! Source: the extension `io.modelcontextprotocol/skills`, "Integrity and Verification".

use crate::{digest, sanitize::media::base64, sanitize::text};
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Error, ErrorKind, Item, ItemKind, Json, Layer, Next, Origin, Outcome, Output,
    ReadResult, RefusalReason, Sanitizer, UntrustedContent,
};
use toolgate_protocol::{
    json::StringAt,
    method::skills::{equal_values, read_frontmatter},
};

/// Sanitizer that checks the files of skills against their listed digest, size and frontmatter. It withholds skills
/// without digests. The entry itself is pinned, so a changed file means a changed skill.
///
/// As a layer it is outside of all sanitizers: a file that a sanitizer changed no longer matches and is rejected. As
/// a sanitizer it is the first to see an entry.
#[derive(Clone, Copy, Debug)]
pub struct SkillIntegrity;

impl Sanitizer for SkillIntegrity {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let UntrustedContent::Item(item) = value else {
            return Ok(());
        };
        let Some(files) = item.manifest() else {
            return Ok(());
        };
        let bad = |why| Err(Error::new(ErrorKind::Upstream, why));
        if files.files.is_none() {
            return bad(
                "the skill lists its files without digests (\"resources\" is \"dynamic\"), so changes cannot be detected",
            );
        }
        let mut dirty = |at: StringAt<'_>| {
            let clean = text::sanitize_text(at.text);
            (clean != at.text).then(|| clean.into_owned())
        };
        match item.def.json().map_strings(&mut dirty) {
            Some(_) => bad(
                "the entry of the skill in the list contains control or invisible characters; report this to the author of the server",
            ),
            None => Ok(()),
        }
    }
}

impl Layer for SkillIntegrity {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        let item = call.item().filter(|item| item.kind() == ItemKind::Skill);
        let Some(item) = item.cloned() else {
            return next.call(call);
        };
        Box::pin(async move {
            let (uri, trail) = (call.name().to_owned(), call.decision_log.clone());
            let outcome = next.call(call).await?;
            let Outcome::Done(Output::Resource(read)) = &outcome else {
                return Ok(outcome);
            };
            let Err(why) = check_skill_file(&item, &uri, read) else {
                return Ok(outcome);
            };
            trail.add("skills", "refuse", why);
            let text = format!("the file of the skill was held back: {why}");
            Err(Error::new(
                ErrorKind::Refused(RefusalReason::BlockedResult),
                text,
            ))
        })
    }
}

/// Checks that a file of a skill matches the digest, size and frontmatter in the listed entry of the skill.
///
/// # Errors
/// Returns the reason if it does not.
#[doc(hidden)]
pub fn check_skill_file(item: &Item, uri: &str, read: &ReadResult) -> Result<(), &'static str> {
    let files = item.manifest();
    let stated = files.as_ref().and_then(|files| files.file(uri));
    let stated = stated
        .ok_or("the \"resources\" of the skill do not list it; read only files that they list")?;
    let [part] = read.contents.as_slice() else {
        return Err(
            "the server did not return it as exactly one part; report this to the author of the server",
        );
    };
    if part.get("uri").and_then(|uri| uri.string()).as_deref() != Some(uri) {
        return Err(
            "the server returned another file than the requested one; report this to the author of the server",
        );
    }
    let bytes = bytes(part)
        .ok_or("the server returned neither its text nor a valid Base64 blob; report this to the author of the server")?;
    if bytes.len() as u64 != stated.size {
        return Err(
            "its size differs from the size in the list of skills: the file or the list changed, or a sanitizer removed a part of the file; list the skills again and retry",
        );
    }
    if digest::of_bytes(&bytes) != stated.digest {
        return Err(
            "its digest differs from the digest in the list of skills: the file or the list changed, or a sanitizer changed the file; list the skills again and retry",
        );
    }
    if uri == item.def.name() {
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| "it is not UTF-8 text; report this to the author of the server")?;
        let own = read_frontmatter(text)?;
        let entry = item.def.json().get("frontmatter");
        let entry = entry.map(|entry| entry.to_value()).unwrap_or_default();
        if !equal_values(&own, &entry) {
            return Err(
                "its frontmatter differs from the frontmatter in the list of skills; list the skills again and retry",
            );
        }
    }
    Ok(())
}

fn bytes(part: &Json) -> Option<Vec<u8>> {
    if let Some(text) = part.get("text") {
        return Some(text.string()?.into_bytes());
    }
    base64::decode_all(&part.get("blob")?.string()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use toolgate_core::Definition;

    const URI: &str = "skill://pdf/SKILL.md";
    const TEXT: &str = "---\nname: pdf\ndescription: Reads forms\n---\n\nRead.\n";

    fn item(frontmatter: Value, resources: Value) -> Arc<Item> {
        let def = json!({"uri": URI, "frontmatter": frontmatter, "resources": resources});
        let def = Definition::read(ItemKind::Skill, Json::from_value(&def)).unwrap();
        let origin = Origin {
            server: "s".into(),
            trusted: false,
        };
        Arc::new(Item::new(origin, def))
    }

    fn stated(text: &str) -> Value {
        let digest = format!("sha256:{}", digest::of_bytes(text.as_bytes()));
        json!([{"uri": URI, "digest": digest, "size": text.len()}])
    }

    fn read(part: Value) -> ReadResult {
        ReadResult {
            contents: vec![Json::from_value(&part)],
            ..ReadResult::default()
        }
    }

    #[cfg(feature = "skills")]
    #[test]
    fn accepts_only_files_that_match_the_entry() {
        let head = json!({"name": "pdf", "description": "Reads forms"});
        let good = item(head.clone(), stated(TEXT));
        let of = |part| check_skill_file(&good, URI, &read(part));
        assert_eq!(of(json!({"uri": URI, "text": TEXT})), Ok(()));
        let blob = base64_of(TEXT.as_bytes());
        assert_eq!(of(json!({"uri": URI, "blob": blob})), Ok(()));
        let longer = format!("{TEXT} ");
        let other = TEXT.replace("Read.", "Rm -f");
        for (part, word) in [
            (json!({"uri": URI, "text": longer}), "size"),
            (json!({"uri": URI, "text": other}), "digest"),
            (
                json!({"uri": "skill://pdf/b", "text": TEXT}),
                "another file",
            ),
            (json!({"uri": URI}), "neither"),
        ] {
            assert!(of(part).unwrap_err().contains(word), "{word}");
        }
        let two = ReadResult {
            contents: vec![Json::from_value(&json!({"uri": URI, "text": TEXT})); 2],
            ..ReadResult::default()
        };
        assert!(check_skill_file(&good, URI, &two).is_err());
        assert!(check_skill_file(&good, "skill://pdf/b", &two).is_err());
        let liar = json!({"name": "pdf", "description": "Reads forms", "allowed-tools": "Bash"});
        let liar = check_skill_file(
            &item(liar, stated(TEXT)),
            URI,
            &read(json!({"uri": URI, "text": TEXT})),
        );
        assert!(liar.unwrap_err().contains("frontmatter"));
    }

    #[test]
    fn withholds_skills_without_digests_or_with_hidden_text() {
        let scrubbed = |mut item: Arc<Item>| {
            let value = UntrustedContent::Item(&mut item);
            Sanitizer::sanitize(&SkillIntegrity, None, None, value).is_ok()
        };
        let head = json!({"name": "pdf", "description": "Reads forms"});
        assert!(scrubbed(item(head.clone(), stated(TEXT))));
        assert!(!scrubbed(item(head, "dynamic".into())));
        let hidden = json!({"name": "pdf", "description": "Reads\u{200b} forms"});
        assert!(!scrubbed(item(hidden, stated(TEXT))));
    }

    fn base64_of(bytes: &[u8]) -> String {
        use ::base64::Engine as _;
        ::base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}
