//! A server with resources: the files of one folder, each under its own URI. Who subscribed to one hears when the tool
//! writes it.
//!
//! `cargo run --example files -- FOLDER` serves on standard input and output.

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use std::{fs::File, io, os::fd::OwnedFd, path::Path, sync::Arc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolgate::{
    Cx, HandlerExit, Resource, ResourceTemplate, Server, handlers::ResourceContents, tools,
};

/// A folder without folders in it, open: what is put in the place of its path later changes nothing.
struct Folder(OwnedFd);

impl Folder {
    fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens the file of that name. Names come from the caller, so they are checked; and since a file may become a link
    /// between a check and its use, it is the opening that follows no link.
    fn file(&self, name: &str, flags: OFlags) -> Result<tokio::fs::File, HandlerExit> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(none(name));
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = openat(&self.0, name, flags, mode).map_err(|error| match error {
            rustix::io::Errno::NOENT | rustix::io::Errno::LOOP => none(name),
            other => io::Error::from(other).into(),
        })?;
        let file = File::from(file);
        match file.metadata()?.is_file() {
            true => Ok(tokio::fs::File::from_std(file)),
            false => Err(none(name)),
        }
    }

    async fn read(&self, name: &str) -> Result<ResourceContents, HandlerExit> {
        let mut bytes = Vec::new();
        let mut file = self.file(name, OFlags::RDONLY)?;
        file.read_to_end(&mut bytes).await?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => ResourceContents::text(text).mime("text/plain"),
            Err(error) => {
                ResourceContents::bytes(error.into_bytes()).mime("application/octet-stream")
            }
        })
    }

    async fn write(&self, name: &str, text: &str) -> Result<(), HandlerExit> {
        let mut file = self.file(name, OFlags::WRONLY | OFlags::CREATE)?;
        // Not while it is opened: only now it is known to be a plain file.
        file.set_len(0).await?;
        file.write_all(text.as_bytes()).await?;
        Ok(file.flush().await?)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if self.file(&name, OFlags::RDONLY).is_ok() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn none(name: &str) -> HandlerExit {
    HandlerExit::not_found(format!("there is no file {name:?}"))
}

fn uri(name: &str) -> String {
    format!("folder:///{name}")
}

/// One file, as it stands in the list.
fn resource(folder: Arc<Folder>, name: String) -> Resource {
    Resource::new(&uri(&name), &name.clone(), move |_cx: Cx| {
        let (folder, name) = (folder.clone(), name.clone());
        async move { folder.read(&name).await }
    })
}

/// The tools: a struct of its own, because the folder is used by the resources too.
struct Writing(Arc<Folder>);

#[tools]
impl Writing {
    /// Writes a file of the folder, in the place of what it held.
    #[tool(idempotent, open_world = false)]
    async fn write(
        &self,
        /// The name of the file, without a folder.
        name: String,
        /// What it shall hold.
        text: String,
        cx: Cx,
    ) -> Result<String, HandlerExit> {
        let is_new = self.0.file(&name, OFlags::RDONLY).is_err();
        self.0.write(&name, &text).await?;
        if is_new {
            let resource = resource(self.0.clone(), name.clone());
            cx.registry().set_resource(resource)?;
        }
        cx.registry().updated(&uri(&name));
        Ok(format!("wrote {name}"))
    }
}

fn server(folder: &Path) -> io::Result<Server> {
    let folder = Arc::new(Folder::open(folder)?);
    let by_name = folder.clone();
    let completing = folder.clone();
    let template = ResourceTemplate::new("folder:///{name}", "file", move |vars, _cx: Cx| {
        let folder = by_name.clone();
        async move { folder.read(vars.get("name")).await }
    })
    .complete("name", move |typed: String, _cx: Cx| {
        let folder = completing.clone();
        async move {
            let mut names = folder.names()?;
            names.retain(|name| name.starts_with(&typed));
            Ok::<_, HandlerExit>(names)
        }
    });
    let mut server = Server::new("files", "1.0.0").template(template);
    for name in folder.names()? {
        server = server.resource(resource(folder.clone(), name));
    }
    Ok(server.tools(Writing(folder)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: files FOLDER")?;
    toolgate::stdio(server(Path::new(&folder))?).await?;
    Ok(())
}
