//! Client credentials, and a user who signs in at once.

use futures_util::future::BoxFuture;
use http::{Request, header};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use toolgate_auth::{
    Secret, Url,
    client::{
        AuthError, AuthErrorKind, ClientAuthentication, EnterpriseAuthorization, OAuthClient,
        PendingSignIn, RegisteredClient, SignIn, WorkloadIdentity,
    },
    jose::{SignatureAlgorithm, SigningKey},
};

use crate::Failed;

/// The address that the suite knows for a document about this client.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Redirect URI of the sign-in. No server listens there: the suite answers with a redirect.
const REDIRECT: &str = "http://127.0.0.1:3118/callback";

/// The login of a scenario.
///
/// # Errors
/// The suite gave something that cannot be used.
pub(crate) fn login(scenario: &str, url: &str, context: &Value) -> Result<OAuthClient, Failed> {
    let login = OAuthClient::builder(Url::parse(url)?).name("toolgate-conformance-client");
    let text = |key: &str| context[key].as_str().unwrap_or_default();
    let secret = |key: &str| Secret::new(text(key));
    let known = |how| RegisteredClient::new(text("client_id"), how);
    Ok(match scenario {
        "auth/client-credentials-basic" => {
            let client = known(ClientAuthentication::Secret(secret("client_secret")));
            login.client(None, client).client_credentials()
        }
        "auth/client-credentials-jwt" => {
            let algorithm = SignatureAlgorithm::from_name(text("signing_algorithm"))
                .ok_or("which algorithm?")?;
            let key = SigningKey::from_pem(algorithm, &secret("private_key_pem"))?;
            let client = known(ClientAuthentication::Key(key.into()));
            login.client(None, client).client_credentials()
        }
        "auth/enterprise-managed-authorization" => {
            let client = known(ClientAuthentication::Basic(secret("client_secret")));
            let provider = Url::parse(text("idp_token_endpoint"))?;
            let there = RegisteredClient::new(text("idp_client_id"), ClientAuthentication::None);
            let enterprise = EnterpriseAuthorization::new(provider, there, secret("idp_id_token"));
            login.client(None, client).enterprise(enterprise)
        }
        "auth/wif-jwt-bearer" => {
            let workload = WorkloadIdentity::new(secret("valid_jwt"));
            login
                .client(None, known(ClientAuthentication::None))
                .workload(workload)
        }
        "auth/pre-registration" => {
            let client = known(ClientAuthentication::Secret(secret("client_secret")));
            login
                .client(context["issuer"].as_str(), client)
                .sign_in(Person)
        }
        _ => login.client_document(Url::parse(DOCUMENT)?).sign_in(Person),
    }
    .build())
}

/// Somebody who says yes.
struct Person;

impl SignIn for Person {
    fn begin<'a>(
        &'a self,
        _wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        Box::pin(async { Ok(Box::new(Person) as Box<dyn PendingSignIn>) })
    }
}

impl PendingSignIn for Person {
    fn redirect_uri(&self) -> &str {
        REDIRECT
    }

    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        Box::pin(async move {
            let came = answer(&url).await;
            came.map_err(|why| AuthError::new(AuthErrorKind::Unreachable, why.to_string()))
        })
    }
}

/// The query of the address that a page redirects to.
async fn answer(url: &Url) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect((url.host(), url.port())).await?;
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let request = Request::get(url.request_target())
        .header(header::HOST, url.authority())
        .body(Empty::<Bytes>::new())?;
    let response = tokio::select! {
        response = sender.send_request(request) => response?,
        ended = connection => return Err(format!("the page was not answered: {ended:?}").into()),
    };
    let to = response
        .headers()
        .get(header::LOCATION)
        .ok_or("the page does not redirect")?;
    let (_, query) = to
        .to_str()?
        .split_once('?')
        .ok_or("it redirects without a query")?;
    Ok(query.to_owned())
}
