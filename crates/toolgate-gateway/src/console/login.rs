//! Who may use the console: whoever opened a fresh link that this program printed.
//!
//! A login is two secrets. Browsers send the cookie to every port of this machine, so another web server on it can learn
//! it. The key lies in the storage of our own origin, port included, and only our page sends it.

use crate::{control::person, door::same};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolgate::ids;
use toolgate_policy::{By, Who};

/// How long a link is good, if nobody opens it.
const LINK: Duration = Duration::from_secs(24 * 3600);
/// How long a browser stays logged in.
const LOGIN: Duration = Duration::from_secs(7 * 24 * 3600);
/// Links and logins at once; the oldest goes.
const MOST: usize = 32;

/// The links that were printed, and the browsers that opened one.
pub(crate) struct Logins {
    address: String,
    cookie: String,
    links: Mutex<Vec<(Link, Instant)>>,
    open: Mutex<Vec<(Secrets, Instant)>>,
}

/// A link that was printed: its token, and whom it is for.
struct Link {
    token: String,
    label: Option<Arc<str>>,
}

struct Secrets {
    cookie: String,
    key: String,
    label: Option<Arc<str>>,
}

/// What a browser gets for a link.
pub(crate) struct Entered {
    /// The value of `Set-Cookie`.
    pub(crate) cookie: String,
    /// What the page has to send beside the cookie.
    pub(crate) key: String,
}

impl Logins {
    /// For a console at this address; browsers share cookies between ports, so the port names ours.
    pub(crate) fn new(address: std::net::SocketAddr) -> Logins {
        let cookie = format!("toolgate_{}", address.port());
        Logins {
            address: format!("http://{address}/"),
            cookie,
            links: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// A fresh link, good once; for the person of that label, or for the owner of this process where it is empty.
    ///
    /// # Errors
    /// The label is no name.
    pub(crate) fn link(&self, label: &str) -> Result<String, String> {
        if !is_label(label) {
            return Err(format!(
                "{label:?} is no name for a person; use up to 64 letters, digits, '.', '-' and '_', and neither \"console\" nor \"terminal\""
            ));
        }
        let token = ids::secret();
        let link = Link {
            token: token.clone(),
            label: (!label.is_empty()).then(|| label.into()),
        };
        remember(&self.links, link, LINK);
        Ok(format!("{}#token={token}", self.address))
    }

    /// Trades the token of a link for a login.
    pub(crate) fn enter(&self, token: &str) -> Option<Entered> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let at = links
            .iter()
            .position(|(known, end)| same(token, &known.token) && *end > Instant::now())?;
        let (link, _) = links.remove(at);
        let (secret, key) = (ids::secret(), ids::secret());
        let cookie = format!(
            "{}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
            self.cookie,
            LOGIN.as_secs()
        );
        let known = Secrets {
            cookie: secret,
            key: key.clone(),
            label: link.label,
        };
        remember(&self.open, known, LOGIN);
        Some(Entered { cookie, key })
    }

    /// Who is logged in, where a `Cookie` header and a key are of one login of ours.
    pub(crate) fn knows(&self, header: &str, key: &str) -> Option<Who> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let cookies = header.split(';').filter_map(|c| c.trim().split_once('='));
        let ours = cookies
            .filter(|(name, _)| *name == self.cookie)
            .map(|(_, value)| value);
        let good = |given: &str, (known, end): &(Secrets, Instant)| {
            // Both are always compared, so that the time says nothing about which one was wrong.
            same(given, &known.cookie) & same(key, &known.key) && *end > Instant::now()
        };
        let mut found = None;
        for given in ours {
            found = open.iter().find(|login| good(given, login)).or(found);
        }
        let (login, _) = found?;
        Some(match &login.label {
            Some(label) => Who::named(By::Console, label.clone()),
            None => person::owner(By::Console),
        })
    }
}

/// Whether a person can be called so. `console` and `terminal` are how calls of the owner are called.
fn is_label(label: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    label.len() <= 64 && label.chars().all(plain) && !matches!(label, "console" | "terminal")
}

fn remember<T>(list: &Mutex<Vec<(T, Instant)>>, secret: T, life: Duration) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    list.retain(|(_, end)| *end > now);
    if list.len() >= MOST {
        list.remove(0);
    }
    list.push((secret, now + life));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_a_login_stays() {
        let logins = Logins::new(([127, 0, 0, 1], 8665).into());
        let link = logins.link("").unwrap();
        let token = link.strip_prefix("http://127.0.0.1:8665/#token=").unwrap();
        assert!(logins.enter("").is_none());
        assert!(logins.enter("wrong").is_none());
        let Entered { cookie, key } = logins.enter(token).unwrap();
        assert!(logins.enter(token).is_none(), "once");
        let pair = cookie.split(';').next().unwrap();
        assert!(logins.knows(&format!("other=1; {pair}"), &key).is_some());
        assert!(logins.knows("toolgate_8665=wrong", &key).is_none());
        assert!(logins.knows(&pair.replace("8665", "8666"), &key).is_none());
    }

    #[test]
    fn a_label_says_who_it_is() {
        let logins = Logins::new(([127, 0, 0, 1], 8665).into());
        let who = |label: &str| {
            let link = logins.link(label).unwrap();
            let Entered { cookie, key } = logins.enter(link.split_once('=').unwrap().1).unwrap();
            logins.knows(cookie.split(';').next().unwrap(), &key)
        };
        assert_eq!(who("ann"), Some(Who::named(By::Console, "ann")));
        assert_eq!(who(""), Some(person::owner(By::Console)));
        for wrong in ["terminal", "console", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(logins.link(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cookie_and_the_key_are_of_one_login() {
        let logins = Logins::new(([127, 0, 0, 1], 8665).into());
        let enter = || {
            let link = logins.link("").unwrap();
            logins.enter(link.split_once('=').unwrap().1).unwrap()
        };
        let (one, other) = (enter(), enter());
        let pair = one.cookie.split(';').next().unwrap();
        assert!(logins.knows(pair, &one.key).is_some());
        for wrong in ["", "1", other.key.as_str(), pair] {
            assert!(logins.knows(pair, wrong).is_none(), "{wrong}");
        }
    }
}

#[cfg(test)]
mod unprinted {
    use super::{Entered, Link, Secrets};

    #[test]
    fn t62_links_and_logins_cannot_be_printed() {
        is_unprinted!(Link, Secrets, Entered);
    }
}
