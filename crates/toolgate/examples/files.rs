//! A server with resources: the files of one folder, each under its own URI. Who subscribed to one hears when the tool
//! writes it.
//!
//! `cargo run --example files -- FOLDER` serves on standard input and output.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::fs;
use toolgate::{Cx, Resource, Server, Stop, Template, handlers::Contents, tools};

/// A folder without folders in it.
struct Folder(PathBuf);

impl Folder {
    /// Where the file of that name is. Names come from the caller, so they are checked.
    fn file(&self, name: &str) -> Result<PathBuf, Stop> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
        let path = self.0.join(name);
        if good && !path.is_symlink() {
            return Ok(path);
        }
        Err(Stop::not_found(format!("no file has the name {name:?}")))
    }

    async fn read(&self, name: &str) -> Result<Contents, Stop> {
        let bytes = match fs::read(self.file(name)?).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Stop::not_found(format!("there is no file {name:?}")));
            }
            read => read?,
        };
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Contents::text(text).mime("text/plain"),
            Err(error) => Contents::bytes(error.into_bytes()).mime("application/octet-stream"),
        })
    }

    async fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut entries = fs::read_dir(&self.0).await?;
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().await?.is_file() && self.file(&name).is_ok() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
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
    ) -> Result<String, Stop> {
        let path = self.0.file(&name)?;
        let is_new = !fs::try_exists(&path).await?;
        fs::write(path, text).await?;
        if is_new {
            let resource = resource(self.0.clone(), name.clone());
            cx.registry().set_resource(resource)?;
        }
        cx.registry().updated(&uri(&name));
        Ok(format!("wrote {name}"))
    }
}

async fn server(folder: &Path) -> io::Result<Server> {
    let folder = Arc::new(Folder(folder.to_owned()));
    let by_name = folder.clone();
    let completing = folder.clone();
    let template = Template::new("folder:///{name}", "file", move |vars, _cx: Cx| {
        let folder = by_name.clone();
        async move { folder.read(vars.get("name")).await }
    })
    .complete("name", move |typed: String, _cx: Cx| {
        let folder = completing.clone();
        async move {
            let mut names = folder.names().await?;
            names.retain(|name| name.starts_with(&typed));
            Ok(names)
        }
    });
    let mut server = Server::new("files", "1.0.0").template(template);
    for name in folder.names().await? {
        server = server.resource(resource(folder.clone(), name));
    }
    Ok(server.tools(Writing(folder)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: files FOLDER")?;
    toolgate::stdio(server(Path::new(&folder)).await?).await?;
    Ok(())
}
