//! TLS to the database, with rustls.

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Makes TLS connections whose certificate chain and host name are verified.
#[derive(Clone)]
pub(super) struct VerifiedTls(Arc<ClientConfig>);

impl VerifiedTls {
    pub(super) fn new(roots: RootCertStore) -> Result<VerifiedTls, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(VerifiedTls(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for VerifiedTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = VerifiedStream<S>;
    type TlsConnect = VerifiedConnect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<VerifiedConnect, Self::Error> {
        Ok(VerifiedConnect {
            connector: TlsConnector::from(self.0.clone()),
            host: ServerName::try_from(host.to_owned())?,
        })
    }
}

pub(super) struct VerifiedConnect {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl<S> TlsConnect<S> for VerifiedConnect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = VerifiedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<VerifiedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.host, stream).await?;
            Ok(VerifiedStream(stream))
        })
    }
}

/// TLS connection to the database.
pub(super) struct VerifiedStream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for VerifiedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is verified, which binds the password exchange to the server as well.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for VerifiedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for VerifiedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
