//! Revision 2025-06-18.

use super::{Dialect, Structured};
use crate::method::tools_call::ContentKind::{Audio, Image, Resource, ResourceLink, Text};

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-06-18",
    stateless: false,
    content: &[Text, Image, Resource, Audio, ResourceLink],
    unknown_tool_members: &["icons", "execution"],
    structured: Structured::Object,
    bad_arguments_are_tool_errors: false,
    progress_message: true,
    elicitation: true,
    batches: false,
};
