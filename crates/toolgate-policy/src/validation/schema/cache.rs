//! Cache of compiled schemas: each is compiled once, however often a server lists it.

use super::{SchemaBounds, SchemaValidator};
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use toolgate_core::Json;

/// A compiled schema, or the reason why it cannot be used.
pub(crate) type CompiledSchema = Result<SchemaValidator, String>;

/// Compiled schemas by the SHA-256 digest of their text and the bounds. Weak: an entry lives as long as an item uses
/// it.
type SchemaCache = HashMap<([u8; 32], SchemaBounds), Weak<CompiledSchema>>;

static SCHEMA_CACHE: Mutex<Option<SchemaCache>> = Mutex::new(None);

/// Minimum size of the cache before dead entries are swept.
const MIN_SWEEP_ENTRIES: usize = 1024;

/// Returns the compiled form of a schema, from the cache if the same text was compiled before.
pub(crate) fn compiled(schema: &Json, bounds: &SchemaBounds) -> Arc<CompiledSchema> {
    let mut key = [0; 32];
    let text = digest(&SHA256, schema.as_str().as_bytes());
    key.copy_from_slice(text.as_ref());
    if let Some(kept) = with_cache(|cache| cache.get(&(key, *bounds)).and_then(Weak::upgrade)) {
        return kept;
    }
    // Outside of the lock: two tasks may compile the same schema at once, which only costs time.
    let made = Arc::new(SchemaValidator::compile(schema, bounds));
    with_cache(|cache| {
        if cache.len() >= MIN_SWEEP_ENTRIES && cache.len().is_power_of_two() {
            cache.retain(|_, one| one.strong_count() > 0);
        }
        cache.insert((key, *bounds), Arc::downgrade(&made));
    });
    made
}

fn with_cache<T>(act: impl FnOnce(&mut SchemaCache) -> T) -> T {
    let mut cache = SCHEMA_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    act(cache.get_or_insert_with(HashMap::new))
}
