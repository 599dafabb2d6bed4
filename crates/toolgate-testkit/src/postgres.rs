//! A PostgreSQL server of Debian's package, for tests: in a directory of its own, on a Unix socket.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::{fs::chown, net::UnixStream, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use crate::HANG_TIMEOUT;

/// Directories in which Debian installs the programs of PostgreSQL.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// PostgreSQL server of a test. It ends when dropped, and its directory is removed.
pub struct PostgresServer {
    dir: PathBuf,
    programs: PathBuf,
    process: Mutex<Option<Child>>,
    /// User and group of the server, which must not be root.
    user: Option<(u32, u32)>,
    settings: Vec<String>,
    databases: AtomicU32,
}

/// Returns the directory with the programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(PROGRAMS).ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

impl PostgresServer {
    /// Returns whether PostgreSQL is installed. Without it, tests that need it are skipped, except with `CI=true`.
    pub fn is_installed() -> bool {
        let found = programs().is_some();
        let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(
            found || !required,
            "PostgreSQL is not installed; apt-get install postgresql"
        );
        if !found {
            let _ = writeln!(
                io::stderr(),
                "skipped: PostgreSQL is not installed (apt-get install postgresql)"
            );
        }
        found
    }

    /// Returns the server that all tests of a process share.
    pub fn shared() -> &'static PostgresServer {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = PostgresServer::start();
            remove_after_exit(&server);
            server
        })
    }

    /// Starts a server without databases of its own.
    pub fn start() -> PostgresServer {
        PostgresServer::with_settings(&[])
    }

    /// Starts a server with further settings, such as `max_connections=5`.
    pub fn with_settings(settings: &[&str]) -> PostgresServer {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-pg-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).expect("a directory for PostgreSQL");
        let user = unprivileged_user();
        if let Some((user, group)) = user {
            chown(&dir, Some(user), Some(group)).expect("the directory gets its owner");
        }
        let server = PostgresServer {
            dir,
            programs: programs().expect("PostgreSQL is installed"),
            process: Mutex::default(),
            user,
            settings: settings.iter().map(ToString::to_string).collect(),
            databases: AtomicU32::new(0),
        };
        let made = server
            .command("initdb")
            .args(["--no-sync", "--username=postgres", "--auth=trust"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(server.data())
            .output()
            .expect("initdb starts");
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        server.run();
        server
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a test needs a server, and ends it"
    )]
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.dir).stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Directory of the data of the server.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Directory of its Unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.dir
    }

    /// Path of its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join(".s.PGSQL.5432")
    }

    /// Starts the server again, after [`PostgresServer::kill`].
    pub fn run(&self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.arg("-k").arg(&self.dir);
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "shared_buffers=16MB",
            "max_connections=100",
        ] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .expect("a log of PostgreSQL");
        command.stdout(Stdio::null()).stderr(log);
        *self.process() = Some(command.spawn().expect("postgres starts"));
        self.wait_until_ready();
    }

    /// Waits until the server accepts connections.
    pub fn wait_until_ready(&self) {
        let until = Instant::now() + HANG_TIMEOUT;
        loop {
            let answer = self
                .command("pg_isready")
                .args(["-q", "-U", "postgres", "-h"])
                .arg(&self.dir)
                .status();
            if answer.expect("pg_isready starts").success() {
                return;
            }
            assert!(
                Instant::now() < until,
                "PostgreSQL does not start: {}",
                self.log()
            );
        }
    }

    /// Returns the log of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Creates a database, and returns its URL.
    pub fn create_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test{number}");
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database, over the Unix socket.
    pub fn url(&self, database: &str) -> String {
        let dir = self.dir.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{dir}/{database}")
    }

    /// Executes statements in a database with psql, and returns what it prints.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let done = self
            .command("psql")
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "postgres",
                "-h",
            ])
            .arg(&self.dir)
            .args(["-d", database, "-c", sql])
            .output()
            .expect("psql starts");
        assert!(
            done.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Kills all its processes with SIGKILL.
    pub fn kill(&self) {
        if self.process().is_none() {
            return;
        }
        let others = self.signal_all("KILL");
        if let Some(mut process) = self.process().take() {
            let _ = process.wait();
        }
        // They hold the shared memory, without which the server does not start again.
        let until = Instant::now() + HANG_TIMEOUT;
        for other in others {
            while Path::new(&format!("/proc/{other}")).exists() {
                assert!(Instant::now() < until, "a process of PostgreSQL goes on");
                std::thread::yield_now();
            }
        }
    }

    /// Stops all its processes (SIGSTOP), as if the machine hung.
    pub fn freeze(&self) {
        self.signal_all("STOP");
    }

    /// Continues all its processes after [`PostgresServer::freeze`].
    pub fn thaw(&self) {
        self.signal_all("CONT");
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a test sends a signal to processes that it started"
    )]
    fn signal_all(&self, signal: &str) -> Vec<u32> {
        let main = self.process().as_ref().map(Child::id);
        let main = main.expect("postgres runs");
        // The main process comes first, so that it starts no others meanwhile.
        let others = self.processes(main);
        for process in std::iter::once(&main).chain(&others) {
            let sent = Command::new("kill")
                .args([format!("-{signal}"), process.to_string()])
                .stderr(Stdio::null())
                .status();
            sent.expect("kill starts");
        }
        others
    }

    /// Returns the processes that the main process started.
    fn processes(&self, main: u32) -> Vec<u32> {
        let all = fs::read_dir("/proc").expect("the processes of the system");
        let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let is_child = |process: &u32| {
            let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // The name of a program may have spaces and parentheses.
            let after = status.rsplit_once(") ").map_or("", |(_, after)| after);
            after.split(' ').nth(1) == Some(main.to_string().as_str())
        };
        all.filter(is_child).collect()
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Network between a gateway and the server: a TCP port of the loopback that a test can cut.
pub struct PostgresLink {
    port: u16,
    state: Arc<LinkShared>,
}

/// State of a [`PostgresLink`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Bytes pass.
    Open,
    /// Connections are closed, also new ones.
    Closed,
    /// No byte passes, and no connection is closed.
    Silent,
}

struct LinkShared {
    state: Mutex<LinkState>,
    changed: Condvar,
    connections: Mutex<Vec<TcpStream>>,
    attempts: AtomicU32,
}

impl PostgresLink {
    /// Opens a port that leads to a server.
    pub fn to(server: &PostgresServer, state: LinkState) -> PostgresLink {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(LinkShared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            connections: Mutex::default(),
            attempts: AtomicU32::new(0),
        });
        let (link, socket) = (shared.clone(), server.socket());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                link.attempts.fetch_add(1, Ordering::SeqCst);
                if link.state() != LinkState::Closed {
                    link.serve(client, &socket);
                }
            }
        });
        PostgresLink {
            port,
            state: shared,
        }
    }

    /// Returns the URL of a database through this link.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Changes the state of the network.
    pub fn set(&self, state: LinkState) {
        *self.state.lock() = state;
        self.state.changed.notify_all();
        if state == LinkState::Closed {
            let mut connections = self.state.connections();
            for connection in connections.drain(..) {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }

    /// Returns the number of connections that were attempted.
    pub fn attempts(&self) -> u32 {
        self.state.attempts.load(Ordering::SeqCst)
    }
}

impl LinkShared {
    fn lock(&self) -> std::sync::MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> LinkState {
        *self.lock()
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while no byte passes.
    fn wait(&self) {
        let mut state = self.lock();
        while *state == LinkState::Silent {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn serve(self: &Arc<LinkShared>, client: TcpStream, socket: &Path) {
        let Ok(server) = UnixStream::connect(socket) else {
            return;
        };
        let _ = client.set_nodelay(true);
        if let Ok(client) = client.try_clone() {
            self.connections().push(client);
        }
        let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        let link = self.clone();
        std::thread::spawn(move || link.copy(from_client, server));
        let link = self.clone();
        std::thread::spawn(move || link.copy(from_server, client));
    }

    fn copy(&self, mut from: impl Read, mut to: impl Write) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            self.wait();
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
    }
}

/// Ends a server that a test process never drops, once that process has ended.
#[allow(
    clippy::disallowed_methods,
    reason = "statics are not dropped, so a process outside ends the server"
)]
fn remove_after_exit(server: &PostgresServer) {
    let main = server.process().as_ref().map(Child::id).unwrap_or_default();
    let script = format!(
        "while kill -0 {test} 2>/dev/null; do sleep 1; done; kill -QUIT {main}; rm -rf '{dir}'",
        test = std::process::id(),
        dir = server.dir.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    let mut child = command.spawn().expect("sh starts");
    std::thread::spawn(move || child.wait());
}

/// Returns a user for the server if this process belongs to root.
fn unprivileged_user() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    find("postgres").or(find("nobody")).or(Some((65534, 65534)))
}
