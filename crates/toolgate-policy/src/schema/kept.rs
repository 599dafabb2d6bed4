//! Cache of compiled schemas: each is compiled once, however often a server lists it.

use super::{Bounds, Schema};
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use toolgate_core::Json;

/// A compiled schema, or the reason why it cannot be used.
pub(crate) type Compiled = Result<Schema, String>;

/// Compiled schemas by the SHA-256 digest of their text and the bounds. Weak: an entry lives as long as an item uses
/// it.
type Shelf = HashMap<([u8; 32], Bounds), Weak<Compiled>>;

static SHELF: Mutex<Option<Shelf>> = Mutex::new(None);

/// Minimum size of the cache before dead entries are swept.
const SWEEP: usize = 1024;

/// Returns the compiled form of a schema, from the cache if the same text was compiled before.
pub(crate) fn compiled(schema: &Json, bounds: &Bounds) -> Arc<Compiled> {
    let mut key = [0; 32];
    let text = digest(&SHA256, schema.as_str().as_bytes());
    key.copy_from_slice(text.as_ref());
    if let Some(kept) = with(|shelf| shelf.get(&(key, *bounds)).and_then(Weak::upgrade)) {
        return kept;
    }
    // Outside of the lock: two tasks may compile the same schema at once, which only costs time.
    let made = Arc::new(Schema::compile(schema, bounds));
    with(|shelf| {
        if shelf.len() >= SWEEP && shelf.len().is_power_of_two() {
            shelf.retain(|_, one| one.strong_count() > 0);
        }
        shelf.insert((key, *bounds), Arc::downgrade(&made));
    });
    made
}

fn with<T>(act: impl FnOnce(&mut Shelf) -> T) -> T {
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    act(shelf.get_or_insert_with(HashMap::new))
}
