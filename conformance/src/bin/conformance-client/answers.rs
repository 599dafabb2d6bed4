//! The answers of the user, of the model and of the client: always yes.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};
use toolgate::client::{ClientBuilder, FormElicitation, SamplingResponse};
use toolgate::handlers::ask::{Reply, Root};
use toolgate::{Client, Error};
use toolgate_auth::client::OAuthClient;

/// A user who may be held up, so that something else can happen between two rounds of a call.
pub(crate) struct User {
    asked: Notify,
    free: Semaphore,
}

impl User {
    /// One who answers only after [`User::go_on`].
    pub(crate) fn new() -> Arc<User> {
        Arc::new(User {
            asked: Notify::new(),
            free: Semaphore::new(0),
        })
    }

    /// Ends once a question is open.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Lets this answer go, and all that follow.
    pub(crate) fn go_on(&self) {
        self.free.close();
    }

    async fn fills(&self, form: &FormElicitation) -> Reply<Value> {
        self.asked.notify_one();
        // It ends with an error once it is closed: that is the sign.
        let _ = self.free.acquire().await;
        Reply::Accepted(ticked(&form.schema))
    }
}

/// Opens a server with all abilities declared.
///
/// # Errors
/// It cannot be opened.
pub(crate) async fn connect(
    url: &str,
    user: Arc<User>,
    login: OAuthClient,
) -> Result<Client, Error> {
    let builder = Client::builder().name("toolgate-conformance-client", env!("CARGO_PKG_VERSION"));
    let builder = builder.credentials(login);
    able(builder, user).connect(url).await
}

fn able(builder: ClientBuilder, user: Arc<User>) -> ClientBuilder {
    let root = Root {
        uri: "file:///tmp".to_owned(),
        name: None,
    };
    builder
        .on_elicit(move |form| {
            let user = user.clone();
            async move { user.fills(&form).await }
        })
        .on_sample(|_| async { Ok(SamplingResponse::text("fixture", "yes")) })
        .roots([root])
}

/// A form as a user leaves it who only clicks: boxes without a default are ticked. Defaults are the client's to fill in.
fn ticked(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let open = fields.filter(|(_, field)| field["type"] == "boolean" && field["default"].is_null());
    let ticked = open.map(|(name, _)| (name.clone(), Value::Bool(true)));
    ticked.collect::<Map<String, Value>>().into()
}
