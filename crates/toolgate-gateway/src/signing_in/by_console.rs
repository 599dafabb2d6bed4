//! Sign-ins by a person in a browser: at the console, or at the page for users of callers.
//!
//! The login of a console has a cookie that no other site's link takes along, and a key that only our own page sends; so
//! the page that is come back to hands over the answer itself, with both. An answer is taken only from the login that
//! began the sign-in.

use super::{
    At,
    visits::{Begun, For, Visits},
};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use toolgate_auth::client::{Grant, LoginBuilder};

/// Where a browser comes back to.
pub(crate) const PATH: &str = "/console/signed-in";

/// What a person has to do about an answer that is not taken.
const OTHER: &str = "this is not the answer to a sign-in that was begun here; begin again under Servers, in this browser";

/// The sign-ins that were begun in a browser, and are not over.
pub(crate) struct SignIns {
    grants: PathBuf,
    visits: Visits<Grant>,
}

/// Somebody signed in.
pub(crate) struct Signed {
    pub(crate) server: String,
    /// For whom alone, where each caller has a grant of its own.
    pub(crate) caller: Option<String>,
    pub(crate) grant: Grant,
}

impl SignIns {
    /// None yet; grants are kept there.
    pub(crate) fn new(grants: PathBuf) -> SignIns {
        SignIns {
            grants,
            visits: Visits::new(OTHER),
        }
    }

    /// Where grants are kept.
    pub(crate) fn grants(&self) -> &Path {
        &self.grants
    }

    /// Begins one for a login of the console, and gives the page where the person signs in. It ends with what it was begun
    /// with: `until` then.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(crate) async fn begin(
        &self,
        At { id, caller, .. }: At<'_>,
        login: LoginBuilder,
        redirect: String,
        by: (&str, Option<BoxFuture<'static, ()>>),
    ) -> Result<Begun, String> {
        let work = |person| {
            let login = login.sign_in(person).build();
            async move { login.sign_in().await }
        };
        self.visits.begin(of(id, caller), redirect, by, work).await
    }

    /// Takes the answer with which a browser came back, from the login that began the sign-in. Any other changes nothing.
    /// Once somebody signed in, `then` is called, also where the browser is gone by then.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(crate) async fn end(
        &self,
        query: &str,
        by: &str,
        then: impl FnOnce(&Signed) + Send + 'static,
    ) -> Result<Signed, String> {
        let signed = move |what: For, grant| {
            let signed = Signed {
                server: what.at,
                caller: what.caller,
                grant,
            };
            then(&signed);
            signed
        };
        self.visits.end(query, by, signed).await
    }

    /// Ends those that were begun for a caller of a server.
    pub(crate) fn give_up(&self, server: &str, caller: &str) {
        self.visits.give_up(&of(server, Some(caller)));
    }
}

fn of(server: &str, caller: Option<&str>) -> For {
    For {
        at: server.to_owned(),
        caller: caller.map(str::to_owned),
    }
}
