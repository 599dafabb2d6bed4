//! Connector: a network connection with or without TLS, or a Unix socket.

use super::connection::BoxError;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpStream;
use tower_service::Service;

/// Connector of one server.
#[derive(Clone)]
pub(super) enum ServerConnector {
    Network(HttpsConnector<HttpConnector>),
    #[cfg(unix)]
    UnixSocket(std::sync::Arc<std::path::Path>),
}

/// Connection to the server.
pub(super) enum ServerStream {
    Network(Box<MaybeHttpsStream<TokioIo<TcpStream>>>),
    #[cfg(unix)]
    UnixSocket(TokioIo<tokio::net::UnixStream>),
}

impl Service<http::Uri> for ServerConnector {
    type Response = ServerStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ServerStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            ServerConnector::Network(connector) => connector.poll_ready(cx),
            #[cfg(unix)]
            ServerConnector::UnixSocket(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        match self {
            ServerConnector::Network(connector) => {
                let connect = connector.call(uri);
                Box::pin(async move { Ok(ServerStream::Network(Box::new(connect.await?))) })
            }
            #[cfg(unix)]
            ServerConnector::UnixSocket(path) => {
                let path = path.clone();
                Box::pin(async move {
                    let stream = tokio::net::UnixStream::connect(&*path).await?;
                    Ok(ServerStream::UnixSocket(TokioIo::new(stream)))
                })
            }
        }
    }
}

impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        match self {
            ServerStream::Network(stream) => stream.connected(),
            #[cfg(unix)]
            ServerStream::UnixSocket(_) => Connected::new(),
        }
    }
}

/// Calls a method of the stream inside.
macro_rules! inner {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            ServerStream::Network(stream) => {
                let $stream = Pin::new(&mut **stream);
                $call
            }
            #[cfg(unix)]
            ServerStream::UnixSocket(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl Read for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl Write for ServerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ServerStream::Network(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            ServerStream::UnixSocket(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write_vectored(cx, parts))
    }
}
