//! E-mail by SMTP.

use super::message::Notification;
use crate::config::{SmtpServer, SmtpTls};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
    transport::smtp::{
        authentication::Credentials,
        client::{Tls, TlsParameters},
    },
};
use std::time::Duration;
use toolgate::auth::Secret;

/// Sends messages as e-mails.
pub(super) struct EmailChannel {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl EmailChannel {
    /// Creates the channel. It connects for each message.
    ///
    /// # Errors
    /// An address is invalid, or TLS cannot be set up.
    pub(super) fn new(
        server: &SmtpServer,
        user: Option<(&str, &Secret)>,
        (from, to): (&str, &[String]),
        timeout: Duration,
    ) -> Result<EmailChannel, String> {
        let tls = || {
            TlsParameters::new(server.host.clone())
                .map_err(|error| format!("TLS for the mail server cannot be set up: {error}"))
        };
        let tls = match server.tls {
            SmtpTls::Implicit => Tls::Wrapper(tls()?),
            SmtpTls::StartTls => Tls::Required(tls()?),
            SmtpTls::None => Tls::None,
        };
        let transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host)
            .port(server.port)
            .timeout(Some(timeout))
            .tls(tls);
        let transport = match user {
            Some((user, password)) => transport.credentials(Credentials::new(
                user.to_owned(),
                password.reveal().to_owned(),
            )),
            None => transport,
        };
        let mailbox = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text:?} is not an e-mail address"))
        };
        Ok(EmailChannel {
            transport: transport.build(),
            from: mailbox(from)?,
            to: to.iter().map(|to| mailbox(to)).collect::<Result<_, _>>()?,
        })
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), String> {
        let message = self
            .to
            .iter()
            .cloned()
            .fold(Message::builder().from(self.from.clone()), |message, to| {
                message.to(to)
            });
        let text = format!("{}\n\n{}\n", notification.text(), notification.link());
        let message = message
            .subject(format!("[toolgate] {}", notification.title()))
            .message_id(None)
            .header(ContentType::TEXT_PLAIN)
            .body(text)
            .map_err(|error| format!("the e-mail cannot be written: {error}"))?;
        let sent = self.transport.send(message).await;
        sent.map(drop)
            .map_err(|error| format!("the mail server did not accept the e-mail: {error}"))
    }
}
