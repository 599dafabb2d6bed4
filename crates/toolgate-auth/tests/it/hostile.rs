//! Pages that a hostile server would have opened.

use crate::test_servers::{ServerBehavior, TestServers};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use toolgate_auth::client::{AuthErrorKind, LoopbackBrowser, OAuthClient};

/// Signs in where a person is sent to `page`, and gives what would have been opened.
async fn opened(page: String) -> (Vec<String>, AuthErrorKind) {
    let servers = TestServers::new(ServerBehavior {
        page: Some(page),
        life: 3600,
        ..ServerBehavior::default()
    })
    .await;
    let opened = Arc::new(Mutex::new(Vec::new()));
    let kept = opened.clone();
    let browser =
        LoopbackBrowser::new(move |url| kept.lock().unwrap().push(url.as_str().to_owned()));
    let browser = browser.timeout(Duration::from_millis(1));
    let login = OAuthClient::builder(servers.server())
        .sign_in(browser)
        .build();
    let error = login.sign_in().await.map(drop).unwrap_err();
    assert!(servers.asked("/token").is_empty());
    let opened = opened.lock().unwrap().clone();
    (opened, error.kind())
}

/// Holds: AUTH-54, SEC-04.
#[tokio::test]
async fn t37_a_hostile_page_is_never_opened() {
    let schemes = [
        "javascript",
        "data",
        "file",
        "vbscript",
        "blob",
        "about",
        "ftp",
        "ssh",
        "smb",
        "ms-msdt",
        "search-ms",
        "zoommtg",
        "view-source",
        "chrome",
        "x-apple",
        "intent",
        "tel",
        "mailto",
        "ws",
        "httpx",
        "httpss",
    ];
    let after = [
        ":alert(1)",
        "://as.test/authorize",
        ":///etc/passwd",
        "://localhost/$(id)",
        ":text/html,<script>1</script>",
    ];
    let mut pages: Vec<String> = schemes
        .iter()
        .flat_map(|scheme| after.iter().map(move |after| format!("{scheme}{after}")))
        .collect();
    let texts = [
        "",
        " ",
        "-https://as.test/",
        "--version",
        "-e/bin/sh",
        "/bin/sh",
        "http://as.test/authorize",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "https://",
        "https:as.test",
        "https:///x",
        "//as.test/",
        "as.test/authorize",
        "https://user@as.test/",
        "https://user:word@as.test/",
        "https://as.test@evil.test/",
        "https://as.test\\@evil.test/",
        "https://as.test/#state=x",
        "https://as.test:99999/",
        "https://as.test:/",
        "https://\u{443}.test/",
        " https://as.test/",
        "https://as.test/ x",
    ];
    pages.extend(texts.map(str::to_owned));
    // What a shell, a terminal or a command line would read.
    let signs = [
        "$(id)`",
        "`id`",
        "\"id\"",
        "<x>",
        "{a,b}",
        "|id",
        "a^b",
        "\\n",
        "\n",
        "\r\nX: y",
        "\t",
        "\0",
        "\u{1b}[2J",
        "\u{9b}2J",
        "\u{202e}x",
        "\u{200b}",
        "\u{7f}",
        "\u{a0}",
    ];
    for sign in signs {
        pages.push(format!("https://as.test/{sign}"));
        pages.push(format!("https://as.test/?x={sign}"));
        pages.push(format!("https://{sign}.test/"));
    }
    // What only we may say.
    let ours = [
        "state",
        "redirect_uri",
        "client_id",
        "resource",
        "code_challenge",
        "response_type",
        "scope",
        "st%61te",
    ];
    pages.extend(ours.map(|name| format!("https://as.test/authorize?{name}=x")));
    let count = pages.len();
    for page in pages {
        let (opened, kind) = opened(page.clone()).await;
        assert!(opened.is_empty(), "{page:?} opened {opened:?}");
        assert_ne!(kind, AuthErrorKind::NeedsSignIn, "{page:?} was waited for");
    }
    println!("{count} pages, none opened");
}

#[tokio::test]
async fn t37_a_good_page_is_one_plain_word() {
    for page in [
        "https://as.test/authorize",
        "https://as.test:8443/a?tenant=1&x=$(id);id&y='z'",
        "HTTPS://AS.test/",
        "https://[2606:4700::1]/a",
        "http://127.0.0.1:1/authorize",
        "http://localhost/authorize",
    ] {
        let (opened, kind) = opened(page.to_owned()).await;
        assert_eq!(kind, AuthErrorKind::NeedsSignIn, "{page} was waited for");
        let [url] = opened.as_slice() else {
            panic!("{page}: {opened:?}");
        };
        assert!(
            url.starts_with(page) && url.bytes().all(|byte| byte.is_ascii_graphic()),
            "{url}"
        );
    }
}
