//! Revision 2025-11-25.

use super::{Dialect, Structured};
use crate::method::tools_call::ContentKind::{Audio, Image, Resource, ResourceLink, Text};

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-11-25",
    stateless: false,
    content: &[Text, Image, Resource, Audio, ResourceLink],
    // Tasks are not offered yet, so no tool may say that it can be one.
    unknown_tool_members: &["execution"],
    structured: Structured::Object,
    bad_arguments_are_tool_errors: true,
    progress_message: true,
    elicitation: true,
    batches: false,
};
