use super::parse;
use crate::config::{NotifyChannel, RequestRisk};
use std::time::Duration;

/// Returns a config with one entry of `[[notify]]`.
fn with_entry(entry: &str) -> String {
    format!("[server.s]\ncommand = [\"x\"]\n[[notify]]\n{entry}\n")
}

/// Checks the message about an entry, without its position.
fn rejects(entry: &str, message: &str) {
    let error = parse(&with_entry(entry)).expect_err(entry);
    assert!(error.contains(message), "{entry}: {error}");
}

#[test]
fn reads_each_channel_with_its_conditions() {
    let config = parse(&with_entry(
        "channel = \"ntfy\"\nname = \"pager\"\nurl = \"https://ntfy.example.com/t\"\nrisk = \"destructive\"\nafter_seconds = 120\n\
         [[notify]]\nchannel = \"desktop\"\ndigest_minutes = 60\nquiet_hours = \"22:00-07:00\"\n\
         [[notify]]\nchannel = \"webhook\"\nurl = \"https://a.example.com/\"\nsecret = { env = \"S\" }\narguments = true\npeople = { U1 = \"ann\" }",
    ))
    .unwrap();
    let [pager, desktop, webhook] = &config.notify[..] else {
        panic!("{:?}", config.notify);
    };
    assert_eq!(
        (pager.name.as_str(), pager.risk),
        ("pager", RequestRisk::Destructive)
    );
    assert_eq!(pager.after, Duration::from_secs(120));
    assert_eq!(desktop.name, "desktop");
    assert_eq!(desktop.channel, NotifyChannel::Desktop);
    assert_eq!(desktop.digest, Some(Duration::from_secs(3600)));
    assert_eq!(webhook.people, [("U1".to_owned(), "ann".to_owned())]);
}

#[test]
fn errors_of_an_entry_say_what_its_channel_needs() {
    rejects("channel = \"pager\"", "\"web_push\"");
    rejects("channel = \"ntfy\"", "\"url\"");
    rejects(
        "channel = \"desktop\"\nurl = \"https://a.example.com/\"",
        "has no effect with channel = \"desktop\", which has no keys of its own; remove it",
    );
    rejects(
        "channel = \"email\"\nsmtp = \"smtps://m.example.com\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\nuser = \"u\"",
        "needs the other of \"user\" and \"password\"",
    );
    rejects(
        "channel = \"webhook\"\nurl = \"https://a.example.com/\"\nsecret = { env = \"S\" }\npeople = { U1 = \"ann\" }",
        "needs arguments = true",
    );
    rejects(
        "channel = \"slack\"\nsecret_url = { env = \"S\" }\narguments = true\npeople = { U1 = \"ann\" }",
        "the signing secret of the Slack app",
    );
    rejects(
        "channel = \"desktop\"\n[[notify]]\nchannel = \"desktop\"",
        "give each entry a name of its own",
    );
    rejects("channel = \"desktop\"\nhours = \"25:00-07:00\"", "hours");
    rejects("channel = \"desktop\"\ntools = [\"other.*\"]", "other");
}
