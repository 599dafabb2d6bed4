//! Conversion of an argument that is text to its type.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use std::{fmt::Display, marker::PhantomData, str::FromStr};

/// Reader of one argument. `(&&&ArgumentReader::<T>::new()).read(from)` selects the first of the three traits below
/// that applies to `T`: the compiler tries fewer dereferences first.
#[derive(Debug)]
pub struct ArgumentReader<T>(PhantomData<fn() -> T>);

impl<T> ArgumentReader<T> {
    /// Returns a reader.
    #[expect(clippy::new_without_default, reason = "only generated code calls it")]
    pub fn new() -> ArgumentReader<T> {
        ArgumentReader(PhantomData)
    }
}

/// Reads types that implement `Deserialize`.
pub trait ReadDeserialized<T> {
    /// Reads the argument.
    ///
    /// # Errors
    /// It does not match the type.
    fn read<'de, D: Deserializer<'de>>(&self, from: D) -> Result<T, D::Error>;
}

impl<T: DeserializeOwned> ReadDeserialized<T> for &&ArgumentReader<T> {
    fn read<'de, D: Deserializer<'de>>(&self, from: D) -> Result<T, D::Error> {
        T::deserialize(from)
    }
}

/// Reads types that implement only `FromStr`.
pub trait ReadParsed<T> {
    /// Reads the argument.
    ///
    /// # Errors
    /// It does not match the type.
    fn read<'de, D: Deserializer<'de>>(&self, from: D) -> Result<T, D::Error>;
}

impl<T: FromStr<Err: Display>> ReadParsed<T> for &ArgumentReader<T> {
    fn read<'de, D: Deserializer<'de>>(&self, from: D) -> Result<T, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Reports types that cannot be read.
pub trait ReadUnsupported<T> {
    /// Never compiles.
    ///
    /// # Errors
    /// Never.
    fn read<'de, D: Deserializer<'de>>(&self, from: D) -> Result<T, D::Error>
    where
        T: ReadableArgument;
}

impl<T> ReadUnsupported<T> for ArgumentReader<T> {
    fn read<'de, D: Deserializer<'de>>(&self, _: D) -> Result<T, D::Error>
    where
        T: ReadableArgument,
    {
        Err(D::Error::custom("the type cannot be read from text"))
    }
}

/// Types that no other trait reads. It has no implementations; its message is what the compiler reports.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from text",
    label = "arguments of prompts and variables of templates are text",
    note = "implement `std::str::FromStr` for `{Self}`, with an error that implements `Display`, or `serde::Deserialize`"
)]
pub trait ReadableArgument {}
