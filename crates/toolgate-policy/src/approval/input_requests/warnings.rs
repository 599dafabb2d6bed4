//! Warnings such as "do not give us your PIN", which name a secret and do not ask for it.
//!
//! Every word of a warning must be in these lists. A text that means something else, or that revokes the warning,
//! always has another word; the form is rejected then. English only.

use super::secret_words::{mark_secrets, split_words};

/// Words allowed before the negation.
const BEFORE: &[&str] = &[
    "please",
    "note",
    "also",
    "and",
    "but",
    "you",
    "we",
    "will",
    "must",
    "should",
    "for",
    "your",
    "own",
    "security",
    "safety",
    "important",
    "warning",
    "caution",
    "attention",
];

/// Negations.
const NOT: &[&[&str]] = &[
    &["do", "not"],
    &["don", "t"],
    &["dont"],
    &["never"],
    &["not"],
    &["mustn", "t"],
    &["shouldn", "t"],
];

/// Verbs that the warning negates. A warning with "to" or "with" a person is not about this form, so neither word is
/// known.
const GIVE: &[&str] = &[
    "enter", "type", "paste", "provide", "give", "submit", "supply", "send", "input", "share",
    "include", "write", "put", "disclose", "reveal", "tell", "add", "use", "ask", "request",
    "need", "require", "want",
];

/// Words allowed around the name of the secret.
const AROUND: &[&str] = &[
    "us", "me", "for", "your", "a", "an", "any", "the", "or", "nor", "and", "of", "in", "into",
    "here", "this", "field", "form", "box", "please", "ever", "kind", "below", "real", "actual",
    "account", "bank",
];

/// Words allowed between the names of secrets in a list, and after them.
const LIST: &[&str] = &[
    "or", "nor", "and", "your", "any", "a", "the", "in", "into", "this", "field", "form", "box",
    "here",
];

/// Words that can refer back to the secret of a warning, or revoke the warning.
const BACK: &[&str] = &[
    "it",
    "its",
    "them",
    "they",
    "those",
    "these",
    "one",
    "ones",
    "same",
    "instead",
    "digit",
    "digits",
    "above",
    "former",
    "latter",
    "anyway",
    "nevertheless",
    "exception",
    "except",
    "unless",
    "however",
    "ignore",
    "disregard",
    "joke",
    "kidding",
    "still",
    "actually",
    "otherwise",
    "mentioned",
    "said",
];

/// Nouns after "this" and "that" that do not mean a secret.
const OF_FORM: &[&str] = &[
    "field", "form", "box", "is", "page", "text", "comment", "message", "problem", "issue", "bug",
    "report", "request", "ticket", "task", "item", "project", "feature",
];

/// Returns a text without its warnings, or `None` if it has none.
pub(super) fn without_warnings(text: &str) -> Option<String> {
    let mut rest = String::new();
    let mut found = false;
    let text = text.replace(['\u{2019}', '\u{2bc}'], "'");
    for sentence in text.split_inclusive(['.', '!', '?', ';', ':', '\n', '(', ')', '[', ']', '"']) {
        // A question, or a sentence that introduces something, may mean the opposite.
        if sentence.ends_with(['?', ':', '"', '(', '[']) {
            rest.push_str(sentence);
            continue;
        }
        let mut warned = false;
        // The rest of a list. Its last part must say "or": without it, the opposite may be meant.
        let mut list = String::new();
        for part in sentence.split_inclusive(',') {
            let words = split_words(part);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if is_warning(&words) {
                (warned, found) = (true, true);
            } else if warned && only(&words, LIST) {
                list.push_str(part);
                if words.iter().any(|word| ["or", "nor"].contains(word)) {
                    list.clear();
                }
            } else {
                warned = false;
                rest.push_str(part);
            }
        }
        rest.push_str(&list);
    }
    found.then_some(rest)
}

/// Reports whether a text may refer back to the secret of a warning.
pub(super) fn refers_back(text: &str) -> bool {
    let words = split_words(text);
    let of_form = |at: usize| {
        let next = words.get(at + 1).map(String::as_str);
        next.is_some_and(|next| OF_FORM.contains(&next))
    };
    words.iter().enumerate().any(|(at, word)| {
        BACK.contains(&word.as_str()) || (matches!(word.as_str(), "this" | "that") && !of_form(at))
    })
}

fn is_warning(words: &[&str]) -> bool {
    let before = words
        .iter()
        .take_while(|word| BEFORE.contains(word))
        .count();
    let words = &words[before..];
    let Some(not) = NOT.iter().find(|not| words.starts_with(not)) else {
        return is_nominal(words);
    };
    let words = &words[not.len()..];
    match words.first() {
        Some(word) if GIVE.contains(word) => {
            let mut words = &words[1..];
            // "enter or share": further verbs may follow directly.
            while let [or, give, rest @ ..] = words
                && ["or", "nor"].contains(or)
                && GIVE.contains(give)
            {
                words = rest;
            }
            only(words, AROUND)
        }
        _ => *not == ["not"].as_slice() && of_secret(words),
    }
}

/// Reports whether the words are a nominal warning, such as "no passwords".
fn is_nominal(words: &[&str]) -> bool {
    words.first() == Some(&"no") && of_secret(&words[1..])
}

fn of_secret(words: &[&str]) -> bool {
    let begins = words
        .first()
        .is_some_and(|word| ["your", "a", "any", "the"].contains(word));
    let named = words
        .first()
        .is_some_and(|word| mark_secrets(&[*word]).is_some());
    (begins || named) && only(words, AROUND)
}

/// Reports whether the words name at least one secret and otherwise only contain known words.
fn only(words: &[&str], known: &[&str]) -> bool {
    let Some(secret) = mark_secrets(words) else {
        return false;
    };
    let other = |at: usize| {
        let before = at.checked_sub(1).map(|before| words[before]);
        words[at] == "other" && matches!(before, Some("or" | "any" | "and"))
    };
    (0..words.len()).all(|at| secret[at] || known.contains(&words[at]) || other(at))
}

#[cfg(test)]
mod tests {
    use super::super::secret_words::{TextLocation, find_secret};
    use super::*;

    /// Reports whether a single text asks for a secret despite its warnings.
    fn asks(text: &str) -> bool {
        match (
            find_secret(text, TextLocation::Prose),
            without_warnings(text),
        ) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(rest)) => {
                find_secret(&rest, TextLocation::Prose).is_some() || refers_back(&rest)
            }
        }
    }

    #[test]
    fn t51_a_warning_is_not_a_request() {
        for text in [
            "Do not give us your PIN.",
            "do not give us your PIN",
            "Don't enter your password",
            "Don’t enter your password here.",
            "Please do not enter your password, PIN or card number in this field.",
            "Please never enter your password, your PIN, or any other credentials.",
            "Your comment. Do not include passwords or API keys!",
            "Describe the problem (do not include your password)",
            "Describe the problem, but do not include your password.",
            "We will never ask for your password.",
            "You must not share your access token.",
            "Never enter or share your password.",
            "Note (no passwords)",
            "Your nickname, not your password",
            "IMPORTANT: never put your password in this field",
            "For your security, do not enter your credit card number.",
            "This field is for comments. Do not enter your PIN.",
        ] {
            assert!(!asks(text), "{text}");
        }
    }

    #[test]
    fn t51_a_negation_hides_no_request() {
        for text in [
            "Never mind, enter your PIN",
            "Never mind enter your PIN",
            "Never mind your PIN, enter your password",
            "Do not worry, enter your password",
            "Do not hesitate to enter your password",
            "Do not forget your password",
            "Do not forget to enter your PIN",
            "Never fail to give your password",
            "Do not submit the form without your password",
            "Do not submit this form until you enter your password",
            "Do not enter your name, enter your password",
            "Do not enter your name and enter your password",
            "Do not enter any other data and enter your PIN",
            "Do not give your password to anyone but us",
            "Do not share your PIN with anyone. Enter the four digits.",
            "Do not enter your PIN. Enter it here",
            "Do not enter your PIN here: enter the one of your card",
            "Do not enter your PIN here; your password goes here",
            "Do not enter your PIN, password below:",
            "Do not enter your PIN, your password instead",
            "Do not enter your PIN, but your password",
            "Do not enter your PIN, password",
            "Code (no PIN, password)",
            "Do not enter your PIN, password, card number",
            "Not a joke: your PIN",
            "No, your PIN",
            "No problem, your password please",
            "Why not enter your password",
            "Why don't you enter your password?",
            "Do not enter your password?",
            "Is there no password? Enter the password",
            "Not only your PIN",
            "Not just your password",
            "Do not never enter your password",
            "It is not true that you should never enter your PIN",
            "Do not skip this: enter your PIN",
            "We do not store your password, so enter your password",
            "We will not store your password",
            "If you do not enter your password you lose your account",
            "Do n0t enter your password",
            "D o n o t enter your password",
            "Do not enter your old password",
            "\"Do not enter your password\" was a joke",
            "Do not enter your PIN. Ignore that.",
            "Do not enter your PIN unless asked",
            "Do not enter your PIN except here",
            "Nicht die PIN, das Passwort eingeben",
            "Do not enter your 密码",
            "Without your password nothing works",
        ] {
            assert!(asks(text), "{text}");
        }
    }
}
