//! Skills: listing, and loading on demand.
//!
//! Source: the extension `io.modelcontextprotocol/skills`. The loaded files match the digests in the entry byte for
//! byte. Nothing is loaded in advance.

use super::{Client, ListedItem};
use toolgate_core::{Error, ErrorKind, ItemKind, ListRequest, ReadResult, RefusalReason};
use toolgate_policy::check_skill_file;

impl Client {
    /// Lists the server's skills: folders of instructions for a model. A server may have skills that the list does not
    /// contain; [`Client::skill`] fetches one.
    ///
    /// Skills are untrusted: ask your user before a model gets one, name the server, and never let the frontmatter
    /// (`allowed-tools`, hooks) grant anything. A skill that states no digests of its files is not listed.
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn skills(&self) -> Result<Vec<ListedItem>, Error> {
        self.list(ItemKind::Skill).await
    }

    /// Returns a skill of the server, listed or not, by the URI of its `SKILL.md`, as the server states it now.
    ///
    /// # Errors
    /// The skill does not exist or cannot be used.
    pub async fn skill(&self, uri: &str) -> Result<ListedItem, Error> {
        let ask = || ListRequest::one(self.inner().caller.clone(), ItemKind::Skill, uri);
        let found = |catalog: toolgate_core::Catalog| {
            let item = catalog.find(uri).filter(|item| item.def.name() == uri);
            item.filter(|item| item.withheld.is_none()).cloned()
        };
        if let Some(item) = found(self.inner().service.list(ask()).await?) {
            return Ok(ListedItem(item));
        }
        self.inner().remote.get_skill(uri).await?;
        let item = found(self.inner().service.list(ask()).await?);
        item.map(ListedItem).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("the skill {uri} is not available: the server does not offer it, or the policy withholds it"),
            )
        })
    }

    /// Loads the `SKILL.md` of a listed skill and verifies it. Its digest, size and frontmatter must match `skill`.
    ///
    /// ```
    /// # async fn f(client: toolgate::Client) -> Result<(), toolgate::Error> {
    /// for skill in client.skills().await? {
    ///     // After the user agreed:
    ///     println!("{}", client.load_skill(&skill).await?);
    ///     let terms = client.skill_file(&skill, "terms.md").await?;
    ///     println!("{} parts", terms.contents.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Refused`]: the file does not match the entry. Fetch the skill again, and ask your
    /// user again.
    pub async fn load_skill(&self, skill: &ListedItem) -> Result<String, Error> {
        let read = self.skill_file(skill, skill.name()).await?;
        let text = read
            .contents
            .first()
            .and_then(|part| part.get("text")?.string());
        text.ok_or_else(|| blocked_file("it is not text; use Client::skill_file"))
    }

    /// Reads a file of a listed skill, by its URI or by its path within the skill. Only files that `skill` states are
    /// read.
    ///
    /// # Errors
    /// As [`Client::load_skill`].
    pub async fn skill_file(&self, skill: &ListedItem, file: &str) -> Result<ReadResult, Error> {
        let stated = skill.0.manifest();
        let stated = stated.ok_or_else(|| blocked_file("the item is not a skill"))?;
        let uri = match stated.file(file) {
            Some(file) => file.uri.clone(),
            None => format!("{}/{file}", stated.root),
        };
        if stated.file(&uri).is_none() {
            return Err(blocked_file(
                "the skill does not list it; read only files that the skill lists",
            ));
        }
        let read = self.read(&uri).await?;
        // Checked again: the cached list may have changed since this entry was returned.
        check_skill_file(&skill.0, &uri, &read).map_err(blocked_file)?;
        Ok(read)
    }
}

fn blocked_file(why: &str) -> Error {
    let text = format!("the file of the skill was held back: {why}");
    Error::new(ErrorKind::Refused(RefusalReason::BlockedResult), text)
}
