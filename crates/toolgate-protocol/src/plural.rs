//! Counts with their nouns, for messages.

/// Formats a count with its noun: `1 server`, `2 servers`.
pub fn count_of(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(count_of(0, "server"), "0 servers");
        assert_eq!(count_of(1, "server"), "1 server");
        assert_eq!(count_of(2, "server"), "2 servers");
    }
}
