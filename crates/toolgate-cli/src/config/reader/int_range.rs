//! Integer settings with a range.

use super::inline_schema::inline_schema;
use schemars::json_schema;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::fmt;

/// Integer from `LOW` to `HIGH`; `#[serde(with = "IntRange::<LOW, HIGH>")]` reads fields of type `T` or `Option<T>`.
pub(in crate::config) struct IntRange<const LOW: u64, const HIGH: u64>(pub(in crate::config) u64);

/// Integer type of a setting.
pub(in crate::config) trait ConfigInteger {
    /// Converts a number in the range of the setting.
    fn from_number(number: u64) -> Self;

    /// Returns the number, if the setting has one.
    fn number(&self) -> Option<u64>;
}

impl ConfigInteger for u64 {
    fn from_number(number: u64) -> u64 {
        number
    }

    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}

impl ConfigInteger for u32 {
    fn from_number(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn number(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
}

impl ConfigInteger for usize {
    fn from_number(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn number(&self) -> Option<u64> {
        u64::try_from(*self).ok()
    }
}

impl<T: ConfigInteger> ConfigInteger for Option<T> {
    fn from_number(number: u64) -> Option<T> {
        Some(T::from_number(number))
    }

    fn number(&self) -> Option<u64> {
        self.as_ref().and_then(T::number)
    }
}

impl<const LOW: u64, const HIGH: u64> IntRange<LOW, HIGH> {
    /// Reads an integer.
    ///
    /// # Errors
    /// The value is not an integer from `LOW` to `HIGH`.
    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>, R: ConfigInteger>(
        deserializer: D,
    ) -> Result<R, D::Error> {
        let read = deserializer.deserialize_u64(IntRangeVisitor::<LOW, HIGH>);
        read.map(R::from_number)
    }

    /// Writes an integer, for the default of the schema.
    ///
    /// # Errors
    /// Those of the serializer.
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &impl ConfigInteger,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.number().serialize(serializer)
    }
}

impl<'de, const LOW: u64, const HIGH: u64> Deserialize<'de> for IntRange<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IntRange::<LOW, HIGH>::deserialize::<D, u64>(deserializer).map(IntRange)
    }
}

struct IntRangeVisitor<const LOW: u64, const HIGH: u64>;

impl<const LOW: u64, const HIGH: u64> Visitor<'_> for IntRangeVisitor<LOW, HIGH> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {LOW} to {HIGH}")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        match (LOW..=HIGH).contains(&number) {
            true => Ok(number),
            false => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

inline_schema!([const LOW: u64, const HIGH: u64] IntRange<LOW, HIGH>, |_| json_schema!({
    "type": "integer", "minimum": LOW, "maximum": HIGH
}));
