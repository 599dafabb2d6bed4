//! Implements `JsonSchema` for types whose schema is not that of their fields.

/// Implements `JsonSchema` with a schema that is written in place: `inline_schema!(Type, schema)`. Generic parameters come
/// first: `inline_schema!([T: JsonSchema] Type<T>, schema)`.
macro_rules! inline_schema {
    ([$($generics:tt)*] $type:ty, $schema:expr) => {
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema = $schema;
                schema(generator)
            }
        }
    };
    ($type:ty, $schema:expr) => {
        inline_schema!([] $type, $schema);
    };
}

pub(in crate::config) use inline_schema;
