//! Credentials in a file store.

use crate::test_servers::{ServerBehavior, TestServers, TestUser};
use futures_util::future::join_all;
use http::StatusCode;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};
use toolgate_auth::client::{AuthErrorKind, CredentialStore, FileCredentialStore, OAuthClient};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("toolgate-auth-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn login(&self, servers: &TestServers) -> OAuthClient {
        let login = OAuthClient::builder(servers.server()).store(FileCredentialStore::new(&self.0));
        login.sign_in(TestUser(servers.clone())).build()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn servers() -> TestServers {
    TestServers::new(ServerBehavior {
        life: 3600,
        ..ServerBehavior::default()
    })
    .await
}

/// Holds: AUTH-50
#[tokio::test]
async fn grants_outlive_a_process_sealed_and_for_the_owner_only() {
    let (servers, folder) = (servers().await, Folder::new("sealed"));
    servers
        .call(&folder.login(&servers), "tools/list")
        .await
        .unwrap();
    servers
        .call(&folder.login(&servers), "tools/list")
        .await
        .unwrap();
    assert_eq!(
        (servers.visits().len(), servers.asked("/register").len()),
        (1, 1)
    );
    for file in fs::read_dir(&folder.0).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
        let bytes = fs::read(file.path()).unwrap();
        for word in ["access-0", "refresh-0", "issuer", "id-of"] {
            let found = bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes());
            assert!(!found, "{word} in {:?}", file.path());
        }
    }
}

/// Holds: AUTH-50
#[tokio::test]
async fn what_was_changed_or_is_open_to_others_is_not_used() {
    let (servers, folder) = (servers().await, Folder::new("changed"));
    servers
        .call(&folder.login(&servers), "tools/list")
        .await
        .unwrap();
    let sealed = folder.0.join("grants.sealed");
    let good = fs::read(&sealed).unwrap();
    for at in [0, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&sealed, bad).unwrap();
        let error = folder
            .login(&servers)
            .credential()
            .await
            .map(drop)
            .unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Store);
        let detail = error.for_operator();
        assert!(detail.contains("all sign-ins"), "{detail}");
        assert!(!error.to_string().contains("grants.sealed"), "{error}");
    }
    fs::write(&sealed, &good[..5]).unwrap();
    assert!(folder.login(&servers).credential().await.is_err());
    fs::write(&sealed, &good).unwrap();
    assert!(folder.login(&servers).credential().await.unwrap().is_some());
    let key = folder.0.join("grants.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = folder
        .login(&servers)
        .credential()
        .await
        .map(drop)
        .unwrap_err();
    let typed = format!("chmod 600 {}", key.display());
    assert!(error.for_operator().contains(&typed), "{error}");
    let folder = folder.0.to_str().unwrap();
    assert!(!format!("{error} {error:?}").contains(folder), "{error}");
}

/// A turn that does not come is told as what it is. The clock is set on whenever nothing else happens.
#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_another_process_is_told_so() {
    let folder = Folder::new("waits");
    let store = FileCredentialStore::new(&folder.0);
    let held = store.refresh_lock("far").await.unwrap();
    let error = store.refresh_lock("far").await.unwrap_err();
    assert!(
        error.to_string().contains("another process") && error.to_string().contains("try again"),
        "{error}"
    );
    drop(held);
    store.refresh_lock("far").await.unwrap();
}

#[tokio::test]
async fn of_two_processes_one_renews() {
    let (servers, folder) = (servers().await, Folder::new("turns"));
    let all: Vec<OAuthClient> = (0..4).map(|_| folder.login(&servers)).collect();
    for login in &all {
        servers.call(login, "tools/list").await.unwrap();
    }
    for round in 1..=5 {
        servers.revoke();
        let calls = all.iter().map(|login| servers.call(login, "tools/list"));
        for done in join_all(calls).await {
            assert_eq!(done.unwrap(), StatusCode::OK);
        }
        assert_eq!(servers.asked("/token").len(), 1 + round);
    }
    assert_eq!(servers.visits().len(), 1);
}

#[tokio::test]
async fn signing_out_forgets_the_grant() {
    let (servers, folder) = (servers().await, Folder::new("out"));
    let login = folder.login(&servers);
    servers.call(&login, "tools/list").await.unwrap();
    login.sign_out().await.unwrap();
    assert!(folder.login(&servers).credential().await.unwrap().is_none());
}
