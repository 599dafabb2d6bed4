//! Listed items.

use std::{fmt, ops::Deref, sync::Arc};
use toolgate_core::{Definition, Item, ToolAnnotations};

/// Tool, resource, resource template, prompt or skill that a server listed: its [`Definition`], and whether its
/// annotations are trusted.
///
/// It dereferences to the definition: `name()`, `title()`, `description()`, `input_schema()`, `output_schema()`, and
/// `json()` for all members unchanged, including `_meta` and icons.
///
/// ```
/// use toolgate::{Client, Error, client::ListedItem};
///
/// /// Returns the tools of a server that only read, as far as it is trusted.
/// async fn reading_tools(client: &Client) -> Result<Vec<ListedItem>, Error> {
///     let tools = client.tools().await?;
///     Ok(tools.iter().filter(|tool| tool.annotations().read_only).cloned().collect())
/// }
/// ```
#[derive(Clone)]
pub struct ListedItem(pub(super) Arc<Item>);

impl ListedItem {
    /// Returns the effective tool annotations: the claimed ones if the server is trusted
    /// ([`ClientBuilder::trust_annotations`](super::ClientBuilder::trust_annotations)), else the most cautious ones.
    pub fn annotations(&self) -> ToolAnnotations {
        self.0.annotations()
    }

    /// Returns the tool annotations that the server claims, trusted or not.
    pub fn claimed_annotations(&self) -> ToolAnnotations {
        self.0.def.annotations()
    }

    /// Returns the item's definition: name, description, schemas and other members, as the server listed them.
    pub fn definition(&self) -> &Definition {
        &self.0.def
    }
}

impl Deref for ListedItem {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0.def
    }
}

impl fmt::Debug for ListedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListedItem({})", self.0.full_name())
    }
}
