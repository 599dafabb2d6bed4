//! The anchor of gateways: hyper on both sides. It forwards each request to the server of `--url` and streams the answer
//! back. It reads nothing of either. Prints its port, and ends with its input.

use hyper::{Request, Response, Uri, body::Incoming, header, service::service_fn};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::TokioExecutor,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let url = toolgate_bench::word("--url").expect("--url with the address of the server");
    let url: Uri = url.parse().expect("a URL");
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    toolgate_bench::serve_http(move || {
        let (client, url) = (client.clone(), url.clone());
        service_fn(move |request| forward(client.clone(), url.clone(), request))
    })
    .await
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    url: Uri,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Error> {
    *request.uri_mut() = url;
    request.headers_mut().remove(header::HOST);
    client.request(request).await
}
