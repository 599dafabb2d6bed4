//! What the code of the attributes refers to. Not for people: it changes without notice.

pub use crate::handlers::{Cx, Prompt, Stop, TaskSupport, Tool, ToolSet};
pub use schemars;
pub use serde;

use crate::{ToolResult, handlers::IntoOutput};

/// A result whose schema is not told.
#[derive(Clone, Debug)]
pub struct Untold<R>(pub R);

impl<R: IntoOutput> IntoOutput for Untold<R> {
    fn into_output(self) -> Result<ToolResult, Stop> {
        self.0.into_output()
    }
}
