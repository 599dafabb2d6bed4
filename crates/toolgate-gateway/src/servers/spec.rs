//! What the operator says of a server.

use crate::{
    config::{Address, Given, RevisionChoice},
    signing_in::{How, Pages},
};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use toolgate::Abilities;
use toolgate_policy::Secrets;
use toolgate_wire::{json::Limits, room::Account};

/// What the operator says of a server. Two that are equal are one server.
#[derive(Clone, PartialEq)]
pub(crate) struct ServerSpec {
    /// Its id; a word of the operator.
    pub(crate) id: Arc<str>,
    /// Program and arguments. No shell. Empty where it has an address.
    pub(crate) command: Vec<String>,
    /// What is set in its environment besides the usual names.
    pub(crate) env: Vec<(String, Given)>,
    /// Names that it gets from our own environment besides the usual ones.
    pub(crate) pass_env: Vec<String>,
    /// Where it runs; our own directory where absent.
    pub(crate) cwd: Option<PathBuf>,
    /// Where it is, if it is not started here.
    pub(crate) address: Option<Address>,
    /// Where what it granted us is kept, sealed, if anywhere.
    pub(crate) grants: Option<PathBuf>,
    /// What a person does to sign in at it.
    pub(crate) how: How,
    /// Where users of its callers sign in, if they can.
    pub(crate) pages: Option<Pages>,
    /// Whether the operator believes its annotations.
    pub(crate) trusted: bool,
    /// The revision of the protocol to use with it.
    pub(crate) revision: RevisionChoice,
    /// Longest time from the start to the end of the handshake; 30 s.
    pub(crate) start: Duration,
    /// Longest line that it may write, in bytes; 16 MiB.
    pub(crate) line: usize,
    /// What JSON it may send.
    pub(crate) json: Limits,
    /// What counts the bytes of its messages; nobody.
    pub(crate) account: Account,
    /// Calls of it that may wait for answers to its questions, and of one caller, and how long; 64, 16 and 10 minutes.
    pub(crate) parked: (usize, usize, Duration),
    /// After which time without a request it is asked whether it is there, if at all.
    pub(crate) ping: Option<Duration>,
    /// Longest instructions that are kept of it, in bytes; 32 KiB.
    pub(crate) instructions: usize,
    /// Most tools that are taken of it; 1000.
    pub(crate) tools: usize,
    /// Most bytes of all its things of one kind; 16 MiB.
    pub(crate) list_bytes: usize,
    /// How long its lists are kept at most; 24 h.
    pub(crate) keep: Duration,
    /// Callers that are connected to it in their own name at the same time; 256.
    pub(crate) callers: usize,
    /// Longest time that a call waits for it while it starts; 30 s.
    pub(crate) call_wait: Duration,
    /// Longest time that lists wait for it while it starts and nothing is known of it; 10 s.
    pub(crate) list_wait: Duration,
    /// What it may ask callers for at most; all.
    pub(crate) abilities: Abilities,
}

impl ServerSpec {
    /// The defaults.
    pub(crate) fn new(id: impl Into<Arc<str>>, command: Vec<String>) -> ServerSpec {
        ServerSpec {
            id: id.into(),
            command,
            env: Vec::new(),
            pass_env: Vec::new(),
            cwd: None,
            address: None,
            grants: None,
            how: How::default(),
            pages: None,
            trusted: false,
            revision: RevisionChoice::default(),
            start: Duration::from_secs(30),
            line: 16 << 20,
            json: Limits::default(),
            account: Account::default(),
            parked: (64, 16, Duration::from_secs(10 * 60)),
            ping: None,
            instructions: 32 << 10,
            tools: 1000,
            list_bytes: 16 << 20,
            keep: Duration::from_secs(24 * 60 * 60),
            callers: 256,
            call_wait: Duration::from_secs(30),
            list_wait: Duration::from_secs(10),
            abilities: Abilities::ALL,
        }
    }

    /// Whether a person can sign in at it for all its callers.
    pub(crate) fn takes_sign_in(&self) -> bool {
        let address = self.address.as_ref().filter(|_| self.grants.is_some());
        address.is_some_and(|a| a.no_sign_in().is_none() && !a.a_grant_each())
    }

    /// Whether each caller has a grant of its own.
    pub(crate) fn a_grant_each(&self) -> bool {
        self.address.as_ref().is_some_and(Address::a_grant_each)
    }

    /// What the console shows of where it comes from, without what looks like a secret.
    pub(crate) fn shown(&self) -> String {
        let words = match &self.address {
            Some(address) => address.shown().to_owned(),
            None => self.command.join(" "),
        };
        Secrets::without(&words).into_owned()
    }
}

impl fmt::Debug for ServerSpec {
    /// Without the environment: its values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSpec")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
