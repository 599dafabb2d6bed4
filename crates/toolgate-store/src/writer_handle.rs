//! Queue and thread of the writer of a store.

use crate::StoreError;
use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

/// Queue to the writer thread of a store, until the store is closed. Dropping it closes the store.
pub(crate) struct WriterHandle<Q> {
    parts: Mutex<Option<(Q, JoinHandle<()>)>>,
}

impl<Q> fmt::Debug for WriterHandle<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterHandle").finish_non_exhaustive()
    }
}

impl<Q: Clone> WriterHandle<Q> {
    pub(crate) fn new(queue: Q, thread: JoinHandle<()>) -> WriterHandle<Q> {
        WriterHandle {
            parts: Mutex::new(Some((queue, thread))),
        }
    }

    /// Returns the queue.
    ///
    /// # Errors
    /// The store is closed.
    pub(crate) fn queue(&self) -> Result<Q, StoreError> {
        let parts = self.lock();
        let (queue, _) = parts.as_ref().ok_or_else(|| {
            StoreError::Failed("it is closed, because the program is shutting down".into())
        })?;
        Ok(queue.clone())
    }
}

impl<Q> WriterHandle<Q> {
    /// Ends the queue, and waits until the thread has written what is in it.
    pub(crate) fn close(&self) {
        let parts = self.lock().take();
        if let Some((queue, thread)) = parts {
            drop(queue);
            // A panic of the thread has already been reported to all waiters.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Q, JoinHandle<()>)>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q> Drop for WriterHandle<Q> {
    fn drop(&mut self) {
        self.close();
    }
}
