//! Identity of a person at a terminal of this machine.

use toolgate_policy::{ApprovalChannel, Approver};

/// Returns the owner of this process, who uses that channel.
pub(crate) fn owner(by: ApprovalChannel) -> Approver {
    user(by, rustix::process::getuid().as_raw())
}

/// Returns the user with that ID. Only the owner and root can reach the control socket.
pub(crate) fn user(by: ApprovalChannel, uid: u32) -> Approver {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_in(&users, uid).unwrap_or_else(|| format!("uid:{uid}"));
    Approver {
        is_owner: true,
        ..Approver::named(by, name)
    }
}

/// Finds the name of a user in lines like `ann:x:1000:1000:Ann:/home/ann:/bin/sh`.
fn name_in(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next().filter(|name| !name.is_empty())?;
        let number: u32 = parts.nth(1)?.parse().ok()?;
        (number == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_user() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(users, 1001), None);
        assert_eq!(
            user(ApprovalChannel::Terminal, 4_294_967_000)
                .name
                .as_deref(),
            Some("uid:4294967000")
        );
    }
}
