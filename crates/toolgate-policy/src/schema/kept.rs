//! Schemas that are in use, compiled once however often a server lists them.

use super::{Bounds, Schema};
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use toolgate_core::Json;

/// A compiled schema, or why it cannot be used.
pub(crate) type Compiled = Result<Schema, String>;

/// By the digest of its text, and the bounds. Held weakly: what no item uses any more is gone.
type Shelf = HashMap<([u8; 32], Bounds), Weak<Compiled>>;

static SHELF: Mutex<Option<Shelf>> = Mutex::new(None);

/// Entries that may be dead before somebody looks.
const SWEEP: usize = 1024;

/// The compiled form of a schema. A server that lists the same tools again gets what was compiled the first time.
pub(crate) fn compiled(schema: &Json, bounds: &Bounds) -> Arc<Compiled> {
    let mut key = [0; 32];
    let text = digest(&SHA256, schema.as_str().as_bytes());
    key.copy_from_slice(text.as_ref());
    if let Some(kept) = with(|shelf| shelf.get(&(key, *bounds)).and_then(Weak::upgrade)) {
        return kept;
    }
    // Outside of the lock: two may compile the same at once, which costs time only.
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
