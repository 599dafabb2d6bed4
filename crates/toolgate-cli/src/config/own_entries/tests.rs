use super::*;
use std::fs;

/// Directory with a config and links to this program.
struct OwnEntriesDirectory(PathBuf);

impl OwnEntriesDirectory {
    fn new(name: &str) -> OwnEntriesDirectory {
        let folder =
            std::env::temp_dir().join(format!("own-entries-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("host.json"), "{}").unwrap();
        fs::write(folder.join("other.toml"), "").unwrap();
        let own = std::env::current_exe().unwrap();
        std::os::unix::fs::symlink(own, folder.join("gate")).unwrap();
        fs::write(folder.join("stranger"), "").unwrap();
        OwnEntriesDirectory(folder)
    }

    fn is_own(&self, words: &[&str]) -> bool {
        let put = |word: &&str| word.replace("DIR", self.0.to_str().unwrap());
        let server = ServerSettings::new("s", words.iter().map(put).collect());
        starts_gateway_of(&server, &self.0.join("host.json"))
    }
}

impl Drop for OwnEntriesDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn finds_this_gateway_behind_names_links_and_wrappers() {
    let folder = OwnEntriesDirectory::new("found");
    for words in [
        &["toolgate", "--stdio", "--config", "DIR/host.json"][..],
        &[
            "/opt/bin/toolgate",
            "serve",
            "--stdio",
            "--config=DIR/host.json",
        ],
        &["DIR/gate", "--stdio", "--config", "DIR/./host.json"],
        &["DIR/gate", "--config", "DIR/host.json"],
        &[
            "env",
            "A=b",
            "-i",
            "DIR/gate",
            "--stdio",
            "--config",
            "DIR/host.json",
        ],
        &[
            "npx",
            "-y",
            "toolgate@1",
            "--stdio",
            "--config",
            "DIR/host.json",
        ],
        &[
            "nohup",
            "env",
            "toolgate",
            "--stdio",
            "--config",
            "DIR/host.json",
        ],
    ] {
        assert!(folder.is_own(words), "{words:?}");
    }
}

#[test]
fn keeps_other_configs_other_commands_and_other_programs() {
    let folder = OwnEntriesDirectory::new("kept");
    for words in [
        &["toolgate", "--stdio", "--config", "DIR/other.toml"][..],
        &[
            "toolgate",
            "run",
            "--stdio",
            "--config",
            "DIR/host.json",
            "--",
            "x",
        ],
        &["toolgate", "demo-server", "--config", "DIR/host.json"],
        &["toolgate", "--no-such-option", "--config", "DIR/host.json"],
        &["DIR/stranger", "--stdio", "--config", "DIR/host.json"],
        &["no-such-program", "--stdio", "--config", "DIR/host.json"],
        &["npx", "-y", "some-server", "--config", "DIR/host.json"],
        &["npx"],
    ] {
        assert!(!folder.is_own(words), "{words:?}");
    }
}

#[test]
fn finds_its_own_listener() {
    let listen: SocketAddr = "127.0.0.1:8665".parse().unwrap();
    for url in [
        "http://127.0.0.1:8665/mcp",
        "http://localhost:8665/mcp",
        "http://[::1]:8665/sse",
    ] {
        assert!(is_listener(url, listen), "{url}");
    }
    for url in [
        "http://127.0.0.1:8666/mcp",
        "https://a.test:8665/mcp",
        "http://10.0.0.1:8665/mcp",
    ] {
        assert!(!is_listener(url, listen), "{url}");
    }
}
