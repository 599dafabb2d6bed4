//! Word lists and matching for texts that ask for a secret.

use crate::pins::shapes;
use std::sync::LazyLock;

/// Phrases that name a secret in any place.
const STRONG: &[&str] = &[
    "password",
    "passwort",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "kennwort",
    "contraseña",
    "senha",
    "wachtwoord",
    "lösenord",
    "mot de passe",
    "пароль",
    "api key",
    "apikey",
    "api token",
    "api secret",
    "access key",
    "access token",
    "refresh token",
    "bearer token",
    "auth token",
    "authentication token",
    "authorization header",
    "session token",
    "session cookie",
    "private key",
    "secret key",
    "signing key",
    "ssh key",
    "client secret",
    "shared secret",
    "connection string",
    "recovery phrase",
    "recovery key",
    "recovery code",
    "backup code",
    "seed phrase",
    "secret phrase",
    "mnemonic",
    "security code",
    "verification code",
    "authentication code",
    "one time code",
    "login code",
    "2fa code",
    "mfa code",
    "otp",
    "totp",
    "cvv",
    "cvc",
    "card number",
    "credit card",
    "pin code",
    "pin number",
    "credential",
];

/// Phrases that name a secret as a field name; in prose, only together with a word of [`GIVE`].
const WEAK: &[&str] = &["pin", "token", "secret", "your key", "cookie"];

/// Words that ask a person to provide something.
const GIVE: &[&str] = &[
    "enter", "type", "paste", "provide", "give", "confirm", "submit", "supply", "send", "input",
    "your",
];

/// Words after a phrase that change its meaning, such as "password policy".
const AFTER: &[&str] = &[
    "policy", "length", "manager", "limit", "count", "budget", "name", "label", "color", "colour",
    "type", "expiry", "days", "ttl",
];

/// Words before a phrase that change its meaning, such as "max tokens".
const BEFORE: &[&str] = &["max", "min", "maximum", "minimum", "total", "number of"];

/// Phrases in scripts without spaces.
const UNPARTED: &[&str] = &[
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "รหัสผ่าน",
];

/// Location of a text in a form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextLocation {
    /// The name or the title of a field.
    Name,
    /// A description or a message.
    Prose,
}

/// Comparison forms of a word: unchanged, and with letters instead of digits.
type WordForms = [String; 3];

/// A phrase of one or more consecutive words.
struct MatchPhrase {
    text: &'static str,
    words: Vec<WordForms>,
    /// Its words, joined.
    joined: WordForms,
}

/// The word lists, prepared for comparison.
struct PhraseLists {
    strong: Vec<MatchPhrase>,
    weak: Vec<MatchPhrase>,
    give: Vec<MatchPhrase>,
    after: Vec<MatchPhrase>,
    before: Vec<MatchPhrase>,
}

static PHRASE_LISTS: LazyLock<PhraseLists> = LazyLock::new(|| {
    let phrase = |text: &&'static str| MatchPhrase {
        text,
        words: text.split(' ').map(word_forms).collect(),
        joined: word_forms(&text.replace(' ', "")),
    };
    let phrases = |list: &[&'static str]| list.iter().map(phrase).collect();
    PhraseLists {
        strong: phrases(STRONG),
        weak: phrases(WEAK),
        give: phrases(GIVE),
        after: phrases(AFTER),
        before: phrases(BEFORE),
    }
});

/// Returns the secret that a text asks for. Confusable letters, digits instead of letters and spaces between letters do
/// not hide it.
pub(super) fn find_secret(text: &str, place: TextLocation) -> Option<&'static str> {
    if let Some(word) = UNPARTED.iter().find(|word| text.contains(**word)) {
        return Some(word);
    }
    let lists = &*PHRASE_LISTS;
    let words: Vec<WordForms> = split_words(text)
        .iter()
        .map(|word| word_forms(word))
        .collect();
    let named = |list: &[MatchPhrase]| {
        let mut list = list.iter();
        list.find(|phrase| names_secret(&words, phrase, lists))
            .map(|phrase| phrase.text)
    };
    let told = || {
        lists
            .give
            .iter()
            .any(|give| find_phrase(&words, give).next().is_some())
    };
    match (named(&lists.strong), place) {
        (Some(found), _) => Some(found),
        (None, TextLocation::Name) => {
            named(&lists.weak).or_else(|| find_joined(text, &words, lists))
        }
        (None, TextLocation::Prose) => named(&lists.weak).filter(|_| told()),
    }
}

/// Marks the words that name secrets; `None` if there are none.
pub(super) fn mark_secrets(words: &[&str]) -> Option<Vec<bool>> {
    let lists = &*PHRASE_LISTS;
    let forms: Vec<WordForms> = words.iter().map(|word| word_forms(word)).collect();
    let mut named = vec![false; words.len()];
    for phrase in lists.strong.iter().chain(&lists.weak) {
        for at in find_phrase(&forms, phrase) {
            named[at..at + phrase.words.len()].fill(true);
        }
    }
    named.contains(&true).then_some(named)
}

/// Returns the positions at which a phrase occurs.
fn find_phrase<'a>(
    words: &'a [WordForms],
    phrase: &'a MatchPhrase,
) -> impl Iterator<Item = usize> + 'a {
    let same = |(a, b): (&WordForms, &WordForms)| a.iter().any(|form| b.contains(form));
    let length = phrase.words.len();
    words
        .windows(length)
        .enumerate()
        .filter(move |(_, window)| window.iter().zip(&phrase.words).all(same))
        .map(|(at, _)| at)
}

/// Reports whether a phrase occurs and means the secret itself: `password`, but not `password policy`.
fn names_secret(words: &[WordForms], phrase: &MatchPhrase, lists: &PhraseLists) -> bool {
    find_phrase(words, phrase).any(|at| {
        let (before, after) = (&words[..at], &words[at + phrase.words.len()..]);
        let begins = |other: &MatchPhrase| find_phrase(after, other).next() == Some(0);
        let ends = |other: &MatchPhrase| {
            let start = before.len().checked_sub(other.words.len());
            start.is_some_and(|start| find_phrase(&before[start..], other).next().is_some())
        };
        !lists.after.iter().any(begins) && !lists.before.iter().any(ends)
    })
}

/// Finds a phrase of more than 5 bytes in a name without separators, such as `userpassword`.
fn find_joined(text: &str, words: &[WordForms], lists: &PhraseLists) -> Option<&'static str> {
    let last = words.last()?;
    if lists.after.iter().any(|after| after.joined[0] == last[0]) {
        return None;
    }
    let whole = word_forms(&text.replace(|c: char| !c.is_alphanumeric(), ""));
    let within = |phrase: &&MatchPhrase| {
        let mut pieces = phrase.joined.iter();
        let long = phrase.text.len() > 5;
        long && pieces.any(|piece| whole.iter().any(|whole| whole.contains(piece)))
    };
    lists.strong.iter().find(within).map(|phrase| phrase.text)
}

/// Splits a text into lower-case words: `apiKey`, `api_key` and `API key` are two words each. Consecutive single
/// letters form one word.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let part = c.is_alphanumeric() || matches!(c, '@' | '$');
        if !part || (c.is_uppercase() && before.is_lowercase()) {
            parts.push(String::new());
        }
        if let Some(word) = parts.last_mut().filter(|_| part) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    let mut words: Vec<String> = Vec::new();
    let mut spelled = false;
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let single = part.chars().nth(1).is_none();
        match words.last_mut() {
            Some(word) if single && spelled => word.push_str(&part),
            _ => words.push(part),
        }
        spelled = single;
    }
    words
}

/// Returns the comparison forms of a word, without a trailing number or plural.
fn word_forms(word: &str) -> WordForms {
    let word = match word.chars().any(char::is_alphabetic) {
        true => word.trim_end_matches(|c: char| c.is_ascii_digit()),
        false => word,
    };
    let word = match word.strip_suffix('s') {
        Some(one) if one.len() > 2 && !one.ends_with('s') => one,
        _ => word,
    };
    let letter = |c| match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        c => c,
    };
    let [one, two] = shapes(word);
    let [three, _] = shapes(&word.chars().map(letter).collect::<String>());
    [one, two, three]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_names_of_all_kinds() {
        for (text, expected) in [
            ("apiKey", "api key"),
            ("API_KEY", "api key"),
            ("HTTPServer", "httpserver"),
            ("p a s s w o r d please", "password please"),
            ("a password", "a password"),
            ("", ""),
        ] {
            assert_eq!(split_words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn t51_secrets_in_words_and_in_disguise() {
        for text in [
            "password",
            "Password",
            "PASSWORD",
            "passwords",
            "pass_word",
            "user_password",
            "newPassword",
            "password2",
            "p4ssw0rd",
            "pa$$word",
            "раssword",
            "ｐａｓｓｗｏｒｄ",
            "p a s s w o r d",
            "p.a.s.s.w.o.r.d",
            "userpassword",
            "passwd",
            "pwd",
            "Passwort",
            "Kennwort",
            "contraseña",
            "mot de passe",
            "пароль",
            "密码",
            "パスワード",
            "비밀번호",
            "api_key",
            "apikey",
            "APIKey",
            "api-key",
            "openaiApiKey",
            "secret_key",
            "client_secret",
            "access_token",
            "githubToken",
            "token",
            "secret",
            "private_key",
            "ssh key",
            "otp",
            "OTP code",
            "one-time code",
            "2FA code",
            "verification code",
            "cvv",
            "CVC2",
            "card_number",
            "cardNumber",
            "pin",
            "PIN code",
            "seed phrase",
            "recovery codes",
            "credentials",
            "session cookie",
            "connection_string",
        ] {
            assert!(find_secret(text, TextLocation::Name).is_some(), "{text}");
        }
    }

    #[test]
    fn t51_what_is_no_secret_is_left_alone() {
        for text in [
            "name",
            "email",
            "city",
            "city_pin_color",
            "color",
            "max_tokens",
            "number of tokens",
            "token_count",
            "token name",
            "password_policy",
            "Password length",
            "passenger",
            "compass",
            "key",
            "issue key",
            "keyboard",
            "primary_key_column",
            "monkey",
            "spinning",
            "opinion",
            "shipping",
            "tokenizer",
            "secretary",
            "branch",
            "postal code",
            "code",
            "country code",
            "area code",
            "description",
            "bypass",
            "passport country",
            "author",
            "option",
            "top",
            "stop_at",
            "cardinality",
            "discount code",
            "error code",
        ] {
            assert_eq!(find_secret(text, TextLocation::Name), None, "{text}");
        }
        for text in [
            "How many tokens may the answer have?",
            "Choose the color of the pin on the map.",
            "Which branch do you want to merge?",
            "Secret Santa: who is next?",
            "The token limit is 4096.",
            "A cookie recipe for how many persons?",
        ] {
            assert_eq!(find_secret(text, TextLocation::Prose), None, "{text}");
        }
    }

    #[test]
    fn t51_prose_that_asks() {
        for text in [
            "Please enter your GitHub password below.",
            "Type the token that was sent to you.",
            "Enter your PIN",
            "We need your API key to go on",
            "Paste the verification code",
            "Give the раssword",
        ] {
            assert!(find_secret(text, TextLocation::Prose).is_some(), "{text}");
        }
    }
}
