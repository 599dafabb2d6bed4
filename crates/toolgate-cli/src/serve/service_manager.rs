//! Notifications to the service manager (`sd_notify`), and listeners that it opened (socket activation).
//!
//! Protocol: `sd_notify(3)` and `sd_listen_fds(3)` of systemd. Other service managers implement both too.

use listenfd::ListenFd;
use std::{
    ffi::OsStr,
    io,
    net::{SocketAddr, TcpListener},
    os::unix::{ffi::OsStrExt, net::UnixDatagram},
    time::Duration,
};

/// Environment variable with the socket for notifications.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Listeners that the service manager opened before it started this process.
pub(crate) struct InheritedListeners(Vec<TcpListener>);

impl InheritedListeners {
    /// Takes the listeners of the environment.
    ///
    /// # Errors
    /// An inherited socket is not a TCP listener; the message says what to do.
    pub(crate) fn take() -> Result<InheritedListeners, String> {
        let mut inherited = ListenFd::from_env();
        let mut listeners = Vec::new();
        for at in 0..inherited.len() {
            let listener = inherited.take_tcp_listener(at).map_err(|error| {
                format!(
                    "socket {at} of the service manager is not a TCP listener: {error}; write ListenStream= with an IP address and a port into its socket unit"
                )
            })?;
            // The runtime needs it so.
            let prepared = listener.map(|listener| {
                listener.set_nonblocking(true)?;
                io::Result::Ok(listener)
            });
            let failed =
                |error| format!("socket {at} of the service manager cannot be used: {error}");
            listeners.extend(prepared.transpose().map_err(failed)?);
        }
        Ok(InheritedListeners(listeners))
    }

    /// Takes the listener of an address out; of a single listener, its address counts whatever the config says.
    pub(crate) fn listener(&mut self, address: SocketAddr, is_main: bool) -> Option<TcpListener> {
        let matches =
            |listener: &TcpListener| listener.local_addr().is_ok_and(|own| own == address);
        let at = match self.0.iter().position(matches) {
            None if is_main && self.0.len() == 1 => Some(0),
            at => at,
        };
        at.map(|at| self.0.remove(at))
    }
}

/// Notifies the service manager that this process serves.
pub(crate) fn notify_ready() {
    notify("READY=1\nSTATUS=serving");
}

/// Notifies the service manager that the gateway begins to stop, and how long it may take.
pub(crate) fn notify_stopping(at_most: Duration) {
    // A few seconds more than the gateway needs, so that it can write its last records.
    let micros = (at_most + Duration::from_secs(10)).as_micros();
    notify(&format!(
        "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={micros}"
    ));
}

/// Sends a notification, if a service manager wants one. A failure is ignored: the service manager then waits for its
/// own time limit and reports it.
fn notify(state: &str) {
    if let Some(socket) = std::env::var_os(NOTIFY_SOCKET) {
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    // A service manager that does not read must not stop the gateway.
    sender.set_nonblocking(true)?;
    match socket.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            sender.send_to_addr(state.as_bytes(), &address)?;
        }
        _ => {
            sender.send_to(state.as_bytes(), socket)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_reach_the_socket_of_the_service_manager() {
        let path = std::env::temp_dir().join(format!("toolgate-notify-{}", std::process::id()));
        let receiver = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let mut buffer = [0; 64];
        let read = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"READY=1");
        std::fs::remove_file(path).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn notifications_reach_an_abstract_socket() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("toolgate-notify-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let receiver = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "READY=1").unwrap();
        let mut buffer = [0; 64];
        let read = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"READY=1");
    }
}
