//! Skills: listed, and loaded when they are wanted.
//!
//! Source: the extension `io.modelcontextprotocol/skills`. What is loaded is what the entry states, to the byte. Nothing is
//! loaded ahead.

use super::{Client, Listed};
use toolgate_core::{Error, ItemKind, Kind, List, ReadResult, Refusal};
use toolgate_policy::is_stated;

impl Client {
    /// The skills that the server lists: instructions for a model, in folders. An empty list does not say that there are
    /// none; [`Client::skill`] asks for one.
    ///
    /// Skills come from the server: ask your user before a model is given one, say whose it is, and never let its head
    /// (`allowed-tools`, hooks) grant anything. A skill that states no digests of its files is not shown.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn skills(&self) -> Result<Vec<Listed>, Error> {
        self.list(ItemKind::Skill).await
    }

    /// One skill by the URI of its `SKILL.md`, also one that no list shows, as its server states it now.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub async fn skill(&self, uri: &str) -> Result<Listed, Error> {
        let ask = || List::one(self.inner().caller.clone(), ItemKind::Skill, uri);
        let found = |catalog: toolgate_core::Catalog| {
            let item = catalog.find(uri).filter(|item| item.def.name() == uri);
            item.filter(|item| item.withheld.is_none()).cloned()
        };
        if let Some(item) = found(self.inner().service.list(ask()).await?) {
            return Ok(Listed(item));
        }
        self.inner().remote.get_skill(uri).await?;
        let item = found(self.inner().service.list(ask()).await?);
        item.map(Listed)
            .ok_or_else(|| Error::new(Kind::NotFound, format!("the skill {uri} cannot be used")))
    }

    /// The text of a skill, its `SKILL.md`. It is what `skill` states, or an error: its digest, its size and its head are
    /// compared.
    ///
    /// # Errors
    /// Above all [`Kind::Refused`](crate::Kind::Refused): what came is not what the skill states. Ask for the skill anew,
    /// and ask your user again.
    pub async fn load_skill(&self, skill: &Listed) -> Result<String, Error> {
        let read = self.skill_file(skill, skill.name()).await?;
        let text = read
            .contents
            .first()
            .and_then(|part| part.get("text")?.string());
        text.ok_or_else(|| refused("it is no text"))
    }

    /// A file of a skill, by its URI or by its path within the skill. Only files that `skill` states are read.
    ///
    /// # Errors
    /// As [`Client::load_skill`].
    pub async fn skill_file(&self, skill: &Listed, file: &str) -> Result<ReadResult, Error> {
        let stated = skill.0.manifest();
        let stated = stated.ok_or_else(|| refused("it is no skill"))?;
        let uri = match stated.file(file) {
            Some(file) => file.uri.clone(),
            None => format!("{}/{file}", stated.root),
        };
        if stated.file(&uri).is_none() {
            return Err(refused("the entry of the skill does not state it"));
        }
        let read = self.read(&uri).await?;
        // Once more: the list may have changed since this entry came.
        is_stated(&skill.0, &uri, &read).map_err(refused)?;
        Ok(read)
    }
}

fn refused(why: &str) -> Error {
    let text = format!("the file of the skill was held back: {why}");
    Error::new(Kind::Refused(Refusal::Result), text)
}
