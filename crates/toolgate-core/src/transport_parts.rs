//! Parts of a request that only its transport knows.

use std::{any::Any, fmt, sync::Arc};

/// Transport-specific parts of a request, for example HTTP headers. Opaque between the edge that received the request
/// and the handler that reads them; cheap to clone.
///
/// Only servers made of handlers keep them, and no built-in rule or layer reads them.
///
/// ```
/// use toolgate_core::TransportParts;
///
/// let parts = TransportParts::new("x-tenant: acme");
/// assert_eq!(parts.downcast_ref(), Some(&"x-tenant: acme"));
/// assert_eq!(parts.downcast_ref::<u8>(), None);
/// ```
#[derive(Clone)]
pub struct TransportParts(Arc<dyn Any + Send + Sync>);

impl TransportParts {
    /// Wraps the parts of one request.
    pub fn new<T: Any + Send + Sync>(parts: T) -> TransportParts {
        TransportParts::from(Arc::new(parts))
    }

    /// Returns the parts, if they have this type.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl<T: Any + Send + Sync> From<Arc<T>> for TransportParts {
    fn from(parts: Arc<T>) -> TransportParts {
        TransportParts(parts)
    }
}

/// Shows no contents, because headers contain secrets.
impl fmt::Debug for TransportParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransportParts")
    }
}
