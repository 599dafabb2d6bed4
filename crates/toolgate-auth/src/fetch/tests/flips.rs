//! T34: DNS rebinding (names whose addresses change with every lookup) and redirects to anywhere.

use super::*;

const SEED_COUNT: u64 = 1000;
/// Addresses that names resolve to. Only the first two are permitted.
const LED: [&str; 8] = [
    "127.0.0.1",
    "127.0.0.2",
    "10.0.0.1",
    "169.254.169.254",
    "192.168.1.1",
    "::ffff:10.0.0.1",
    "fc00::1",
    "0.0.0.0",
];

/// Reproducible random number generator.
struct SeededRandom(u64);

impl SeededRandom {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    /// Returns the addresses of a name: mostly one permitted address, or one of each kind.
    fn addresses(&mut self) -> Vec<IpAddr> {
        let one = |dice: &mut SeededRandom| {
            let sides = if dice.roll(3) == 0 { LED.len() } else { 1 };
            LED[dice.roll(sides)].parse().unwrap()
        };
        (0..=self.roll(2)).map(|_| one(self)).collect()
    }
}

/// Returns the responses of the server of a seed: redirects, and a document at the end.
fn answers(dice: &mut SeededRandom, port: u16) -> Vec<String> {
    let led = |dice: &mut SeededRandom| match dice.roll(8) {
        0 => format!("http://10.0.0.1:{port}/"),
        1 => "http://169.254.169.254/latest/meta-data".to_owned(),
        2 => format!("//127.0.0.1:{port}/other-host"),
        3 => "https://a.test/".to_owned(),
        4 => format!("http://localhost:{port}/again"),
        _ => "/again".to_owned(),
    };
    let mut answers: Vec<String> = (0..dice.roll(5)).map(|_| to(&led(dice))).collect();
    answers.push(ok("{}"));
    answers
}

/// Holds: SEC-03
#[tokio::test]
async fn t34_no_flip_and_no_redirect_leads_elsewhere() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let next: Arc<Mutex<Vec<String>>> = Arc::default();
    let served = next.clone();
    #[allow(clippy::disallowed_methods, reason = "a server of a test")]
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let answer = served.lock().unwrap().pop().unwrap_or_else(|| ok("{}"));
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let (mut connections, mut looks, mut done) = (0, 0, 0);
    for seed in 0..SEED_COUNT {
        let mut dice = SeededRandom(seed);
        let mut planned = answers(&mut dice, port);
        planned.reverse();
        *next.lock().unwrap() = planned;
        // Every lookup, and every connection with the number of lookups before it.
        let said: Arc<Mutex<Vec<Vec<IpAddr>>>> = Arc::default();
        let reached: Arc<Mutex<Vec<(usize, IpAddr)>>> = Arc::default();
        let (dice, tell, hear) = (Mutex::new(dice), said.clone(), reached.clone());
        let looked = said.clone();
        let fetcher = heard(
            AddressPolicy::public().and_loopback(),
            move |_| {
                let now = dice.lock().unwrap().addresses();
                tell.lock().unwrap().push(now.clone());
                now
            },
            move |ip| {
                hear.lock()
                    .unwrap()
                    .push((looked.lock().unwrap().len(), ip))
            },
        );
        let first = FetchRequest::get(url(&format!("http://localhost:{port}/")));
        done += usize::from(fetcher.fetch(first).await.is_ok());
        let (said, reached) = (said.lock().unwrap(), reached.lock().unwrap());
        for (after, ip) in reached.iter() {
            // Exactly the answer that was checked, and no later one.
            let answer = &said[after - 1];
            let allowed = answer.iter().all(IpAddr::is_loopback);
            assert!(
                allowed && answer.contains(ip),
                "seed {seed}: {ip} after {said:?}"
            );
        }
        // One lookup per hop: no name is resolved twice.
        let hops = 1 + reached.last().map_or(0, |(after, _)| *after);
        assert!(said.len() <= hops, "seed {seed}: {said:?} {reached:?}");
        connections += reached.len();
        looks += said.len();
    }
    assert!(connections > 500 && done > 100, "{connections} {done}");
    println!(
        "T34: {SEED_COUNT} seeds, {looks} looks, {connections} connections, all to what was checked; {done} fetches came through"
    );
}
