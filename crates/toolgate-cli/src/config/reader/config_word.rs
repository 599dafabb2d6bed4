//! Settings whose value is one of a few words.

use super::inline_schema::inline_schema;
use schemars::Schema;
use serde::{
    Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Type whose values are words in the config.
pub(in crate::config) trait ConfigWord: Copy + 'static {
    /// Words and their values.
    const WORDS: &'static [(&'static str, Self)];
}

/// Switch of a check.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub(in crate::config) enum CheckSwitch {
    #[default]
    Check,
    Off,
}

impl CheckSwitch {
    /// Returns true unless the check is off.
    pub(in crate::config) fn is_on(self) -> bool {
        self == CheckSwitch::Check
    }
}

impl ConfigWord for CheckSwitch {
    const WORDS: &'static [(&'static str, CheckSwitch)] =
        &[("check", CheckSwitch::Check), ("off", CheckSwitch::Off)];
}

/// Form of a word in the config, for `#[serde(with = "Word::<T>")]` on fields of type `T` or `Option<T>`.
pub(in crate::config) struct Word<T>(PhantomData<T>);

impl<T: ConfigWord> Word<T> {
    /// Reads a word.
    ///
    /// # Errors
    /// The value is not one of the words.
    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>, R: From<T>>(
        deserializer: D,
    ) -> Result<R, D::Error> {
        deserializer
            .deserialize_str(WordVisitor(T::WORDS))
            .map(R::from)
    }

    /// Writes the word of a value, for the default of the schema.
    ///
    /// # Errors
    /// Those of the serializer.
    pub(in crate::config) fn serialize<R: From<T> + PartialEq, S: Serializer>(
        value: &R,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let word = T::WORDS.iter().find(|(_, word)| R::from(*word) == *value);
        word.map(|(word, _)| *word).serialize(serializer)
    }
}

/// Visitor that accepts these words.
pub(in crate::config) struct WordVisitor<'w, T>(pub(in crate::config) &'w [(&'static str, T)]);

impl<T: Copy> Visitor<'_> for WordVisitor<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of the words")
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<T, E> {
        let found = self.0.iter().find(|(word, _)| *word == given);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| E::unknown_variant(given, &[]))
    }
}

inline_schema!([T: ConfigWord] Word<T>, |_| word_schema(
    T::WORDS.iter().map(|(word, _)| *word)
));

/// Returns the schema of a choice of words.
pub(in crate::config) fn word_schema(words: impl Iterator<Item = &'static str>) -> Schema {
    schemars::json_schema!({"type": "string", "enum": words.collect::<Vec<_>>()})
}
