//! Frontmatter of a `SKILL.md` without a reader of YAML: each one is rejected, because it cannot be checked.

use serde_json::Value;

/// Rejects the frontmatter of a skill.
///
/// # Errors
/// Always: this build cannot read YAML.
pub fn read_frontmatter(_: &str) -> Result<Value, &'static str> {
    Err(
        "this program cannot read the frontmatter of skills; enable the feature `skills` of toolgate",
    )
}

/// Returns false, as no skill frontmatter was read.
pub fn equal_values(_: &Value, _: &Value) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_each_frontmatter() {
        let head = "---\nname: pdf\ndescription: Reads forms\n---\n";
        assert!(read_frontmatter(head).is_err());
        assert!(!equal_values(&Value::Null, &Value::Null));
    }
}
