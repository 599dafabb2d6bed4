use super::*;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Temporary directory that only this user can enter.
struct ConfigTestDirectory(PathBuf);

impl ConfigTestDirectory {
    fn new() -> ConfigTestDirectory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "toolgate-config-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        chmod(&path, 0o700);
        ConfigTestDirectory(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        chmod(&path, mode);
        path
    }
}

impl Drop for ConfigTestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

const FINE: &str = "[server.s]\ncommand = [\"x\"]\n";

fn refusal(path: &Path) -> String {
    let error = Config::load(Some(path)).unwrap_err().to_string();
    error
        .strip_prefix(&format!("{}: ", path.display()))
        .unwrap_or(&error)
        .to_owned()
}

#[test]
fn a_file_is_read_and_hashed() {
    let dir = ConfigTestDirectory::new();
    let config = Config::load(Some(&dir.write("toolgate.toml", FINE, 0o644))).unwrap();
    let sum = ring::digest::digest(&ring::digest::SHA256, FINE.as_bytes());
    assert_eq!(
        config.hash,
        Some(toolgate_protocol::hex::encode(sum.as_ref()))
    );
    assert_eq!(
        config.source,
        ConfigSource::File(dir.0.join("toolgate.toml"))
    );
}

#[test]
fn rejects_a_file_that_others_can_write() {
    let dir = ConfigTestDirectory::new();
    for mode in [0o664, 0o646, 0o666] {
        let refusal = refusal(&dir.write("toolgate.toml", FINE, mode));
        let words = "lets others write to this file, which decides which programs are started; run chmod go-w on it";
        assert_eq!(refusal, format!("is refused: its mode {mode:04o} {words}"));
    }
}

#[test]
fn rejects_a_link_that_others_can_place() {
    let dir = ConfigTestDirectory::new();
    let (file, link) = (
        dir.write("real.toml", FINE, 0o644),
        dir.0.join("open/toolgate.toml"),
    );
    fs::create_dir(dir.0.join("open")).unwrap();
    symlink(&file, &link).unwrap();
    let two = dir.0.join("two.toml");
    symlink("open/toolgate.toml", &two).unwrap();
    for (mode, fine) in [
        (0o755, true),
        (0o777, false),
        (0o775, false),
        (0o1777, true),
    ] {
        chmod(&dir.0.join("open"), mode);
        for path in [&link, &two] {
            assert_eq!(
                Config::load(Some(path)).is_ok(),
                fine,
                "{mode:o} {}",
                path.display()
            );
        }
    }
    chmod(&dir.0.join("open"), 0o755);
    chmod(&file, 0o666);
    assert!(refusal(&link).contains("mode 0666"));
}

#[test]
fn rejects_files_that_are_not_configs() {
    let dir = ConfigTestDirectory::new();
    assert_eq!(
        refusal(&dir.0),
        "is not a regular file; give the path of a regular file"
    );
    assert!(refusal(&dir.0.join("none.toml")).starts_with("cannot be read: "));
    let binary = dir.write("binary.toml", b"a = 1\nb = \"\xff\"", 0o644);
    assert_eq!(
        refusal(&binary),
        "is not UTF-8 text (line 2); save it as UTF-8"
    );
    let full = format!("{FINE}{}", "#".repeat(1024 * 1024 - FINE.len()));
    assert!(Config::load(Some(&dir.write("full.toml", &full, 0o644))).is_ok());
    assert_eq!(
        refusal(&dir.write("long.toml", full + "#", 0o644)),
        "is longer than 1048576 bytes, which is the limit; shorten it"
    );
    symlink("loop.toml", dir.0.join("loop.toml")).unwrap();
    assert!(refusal(&dir.0.join("loop.toml")).contains("more than 16 symbolic links"));
}

#[test]
fn rejects_a_token_file_that_others_can_read() {
    let dir = ConfigTestDirectory::new();
    let config = dir.write(
        "toolgate.toml",
        format!("token = {{ file = \"token\" }}\n{FINE}"),
        0o644,
    );
    let read = || Config::load(Some(&config)).unwrap().check_tokens();
    assert!(read().unwrap_err().to_string().contains("cannot be read"));
    dir.write("token", "0123456789abcdef\n", 0o600);
    assert_eq!(read(), Ok(()));
    dir.write("token", "0123456789abcde\n", 0o600);
    let short = read().unwrap_err().to_string();
    assert!(
        short.contains("toolgate.toml:1:9: ")
            && short.contains("has a value that is 15 bytes long"),
        "{short}"
    );
    let open = dir.write("token", "0123456789abcdef\n", 0o640);
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .contains("its mode 0640 lets others read"),
        "{}",
        open.display()
    );
}

/// Hosts write plaintext secrets. The gateway loads them if no other user can read the file, and reports them.
#[test]
fn rejects_host_json_with_secrets_that_others_can_read() {
    let dir = ConfigTestDirectory::new();
    let server = r#"{"command": "x", "args": ["--token", "canary"], "env": {"A": "1", "B_TOKEN": "canary"}}"#;
    let far =
        r#"{"url": "https://a.test/?key=canary", "headers": {"Authorization": "Bearer canary"}}"#;
    let text = format!("{{\"mcpServers\": {{\"s\": {server}, \"far\": {far}}}}}");
    let path = dir.write("hosts.json", &text, 0o644);
    assert!(refusal(&path).contains("its mode 0644 lets others read or write the secret in it"));
    chmod(&path, 0o600);
    let notes = Config::load(Some(&path)).unwrap().notes;
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(
        notes.iter().all(|note| !note.contains("canary")),
        "{notes:?}"
    );
    assert!(
        notes[0].contains("B_TOKEN") && notes[0].contains("env = { B_TOKEN = { env = "),
        "{notes:?}"
    );
    let none = r#"{"mcpServers": {"s": {"command": "x", "env": {"A": "1"}}}}"#;
    assert!(Config::load(Some(&dir.write("plain.json", none, 0o644))).is_ok());
}

/// Secret files must be private; the trailing line break of an editor is removed.
#[test]
fn rejects_a_value_file_that_others_can_read() {
    let dir = ConfigTestDirectory::new();
    let given = ConfigValue::File(dir.write("key", "canary\n", 0o600));
    let read = || given.read().map(|value| value.reveal().to_owned());
    assert_eq!(read(), Ok("canary".to_owned()));
    for mode in [0o640, 0o604, 0o666] {
        dir.write("key", "canary\n", mode);
        let told = read().unwrap_err();
        assert!(
            told.contains("chmod 600 on it") && !told.contains("canary"),
            "{told}"
        );
    }
    dir.write("key", "x".repeat(MAX_SECRET_FILE_BYTES + 1), 0o600);
    assert!(read().unwrap_err().contains("is longer than 65536 bytes"));
}
