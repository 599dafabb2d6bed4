//! Load generator: sends requests at scheduled times (open loop), or each as soon as an answer arrives (closed loop).
//!
//! The schedule does not depend on the answers, and latency counts from the scheduled time: no coordinated omission.

use super::connection::{Connection, Reply};
use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    fd::OwnedFd,
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Time after which a request is dropped that found no free connection.
const UNSENT: Duration = Duration::from_millis(500);

/// Time to wait for the last answers.
const DRAIN: Duration = Duration::from_secs(5);

/// First request number: all numbers have eight digits, so all requests have the same length.
const FIRST: u64 = 10_000_000;

/// Outcome of one request.
pub struct Record {
    /// Scheduled time, since the start of the run.
    pub due: Duration,
    /// Time at which it was sent; `None` if no connection was free in time.
    pub sent: Option<Duration>,
    /// Time of its answer.
    pub answered: Option<Duration>,
    /// The answer.
    pub reply: Option<Reply>,
}

impl Record {
    /// Returns whether the answer is the expected result.
    pub fn is_good(&self) -> bool {
        self.reply == Some(Reply::Good)
    }

    /// Returns the time from the scheduled time to the answer.
    pub fn latency(&self) -> Option<Duration> {
        Some(self.answered? - self.due)
    }
}

/// A constant rate for some time.
#[derive(Clone, Copy)]
pub struct Step {
    /// Requests in a second.
    pub rate: f64,
    /// Duration of the step.
    pub time: Duration,
}

/// The connections, and the requests on them.
pub struct Generator {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    free: VecDeque<usize>,
    /// The request with number [`FIRST`].
    template: Vec<u8>,
    /// Offsets of the number in the template.
    numbers: Vec<usize>,
    /// End of the text of an answer, after the text of the request.
    padding: Vec<u8>,
    next: u64,
    begin: Instant,
    records: Vec<Record>,
}

impl Generator {
    /// Opens the connections. `request` returns the request with a number, `text` the expected text of its answer.
    pub fn connect(
        port: u16,
        count: usize,
        request: impl Fn(u64) -> Vec<u8>,
        padding: &[u8],
    ) -> Generator {
        let template = request(FIRST);
        let digits = FIRST.to_string();
        let numbers = template
            .windows(digits.len())
            .enumerate()
            .filter(|(_, part)| *part == digits.as_bytes())
            .map(|(at, _)| at)
            .collect();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
        let connections: Vec<Connection> =
            (0..count).map(|at| Connection::open(port, at)).collect();
        let mut generator = Generator {
            epoll,
            free: (0..count).collect(),
            connections,
            template,
            numbers,
            padding: padding.to_owned(),
            next: FIRST,
            begin: Instant::now(),
            records: Vec::new(),
        };
        (0..count).for_each(|at| generator.register(at));
        generator
    }

    /// Keeps so many requests in flight.
    pub fn closed(&mut self, flight: usize, time: Duration) -> Vec<Record> {
        self.begin = Instant::now();
        loop {
            let now = self.begin.elapsed();
            let busy = self.connections.len() - self.free.len();
            match now < time {
                true => (busy..flight).for_each(|_| self.schedule(now)),
                false if busy == 0 || now > time + DRAIN => break,
                false => {}
            }
            self.receive(DRAIN);
        }
        std::mem::take(&mut self.records)
    }

    /// Follows the steps. Calls `at_start` when a step starts, and at the end of the last one.
    pub fn open(&mut self, steps: &[Step], mut at_start: impl FnMut(usize)) -> Vec<Record> {
        self.begin = Instant::now();
        let (mut step, mut start, mut sent) = (0, Duration::ZERO, 0);
        let mut waiting = VecDeque::new();
        at_start(0);
        loop {
            let now = self.begin.elapsed();
            let mut next = now + DRAIN;
            while let Some(current) = steps.get(step) {
                let due = start + Duration::from_secs_f64(sent as f64 / current.rate);
                if due >= start + current.time {
                    if now < start + current.time {
                        next = start + current.time;
                        break;
                    }
                    (step, start, sent) = (step + 1, start + current.time, 0);
                    at_start(step);
                } else if due <= now {
                    waiting.push_back(due);
                    sent += 1;
                } else {
                    next = due;
                    break;
                }
            }
            while let Some(due) = waiting.front().copied() {
                if now - due > UNSENT {
                    self.records.push(Record::new(due));
                } else if self.free.is_empty() {
                    break;
                } else {
                    self.schedule(due);
                }
                waiting.pop_front();
            }
            let idle = waiting.is_empty() && self.free.len() == self.connections.len();
            if step == steps.len() && (idle || now > start + DRAIN) {
                break;
            }
            self.receive(next.saturating_sub(self.begin.elapsed()));
        }
        std::mem::take(&mut self.records)
    }

    /// Sends the next request on a free connection.
    fn schedule(&mut self, due: Duration) {
        let at = self.free.pop_front().expect("a free connection");
        let digits = self.next.to_string();
        for at in &self.numbers {
            self.template[*at..*at + digits.len()].copy_from_slice(digits.as_bytes());
        }
        self.next += 1;
        let mut record = Record::new(due);
        record.sent = Some(self.begin.elapsed());
        self.connections[at].send(&self.template, digits, self.records.len());
        self.records.push(record);
    }

    /// Waits for answers, and reads them.
    fn receive(&mut self, most: Duration) {
        let timeout = Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: most.subsec_nanos().into(),
        };
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("epoll: {error}"),
        }
        for event in events {
            let at = event.data.u64() as usize;
            let connection = &mut self.connections[at];
            let (answer, closed) = connection.receive(&self.padding);
            if let Some((record, reply)) = answer {
                self.records[record].answered = Some(self.begin.elapsed());
                self.records[record].reply = Some(reply);
                self.free.push_back(at);
            }
            if closed {
                connection.reopen();
                self.register(at);
            }
        }
    }

    fn register(&mut self, at: usize) {
        let data = epoll::EventData::new_u64(at as u64);
        let stream = self.connections[at].stream();
        epoll::add(&self.epoll, stream, data, epoll::EventFlags::IN).expect("epoll");
    }
}

impl Record {
    fn new(due: Duration) -> Record {
        Record {
            due,
            sent: None,
            answered: None,
            reply: None,
        }
    }
}
