//! What a panic says of a call, and what it must not.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    cell::Cell,
    io::{self, Write},
    panic::{PanicHookInfo, set_hook, take_hook},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

thread_local! {
    /// Whether this thread works on a call.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

static EVERYWHERE: AtomicBool = AtomicBool::new(false);

/// From now on no panic of this process says what was put together while it ran: for programs whose log must not carry
/// what passes through. Where a panic happened is told as ever.
pub fn withhold_panic_words() {
    EVERYWHERE.store(true, Relaxed);
    hook();
}

/// Works on a call: a panic in it says nothing of what it works on.
pub(crate) fn withheld<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IN_CALL.set(self.0);
        }
    }
    hook();
    let _before = Before(IN_CALL.replace(true));
    work()
}

/// Puts our hook before the one that there is, once. A program that sets another one later has that one.
fn hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            match IN_CALL.get() || EVERYWHERE.load(Relaxed) {
                true => tell(info),
                false => before(info),
            }
        }));
    });
}

/// The place, and words that stand in the code as they are. An error here is nobody's.
fn tell(info: &PanicHookInfo<'_>) {
    let words = info.payload().downcast_ref::<&'static str>();
    let words = words.unwrap_or(&"what it said is withheld: it may hold what passes through");
    let place = info.location().map(ToString::to_string);
    let place = place.unwrap_or_else(|| "an unknown place".to_owned());
    let mut to = io::stderr().lock();
    let _ = writeln!(to, "panic at {place}: {words}");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        let _ = writeln!(to, "{trace}");
    }
}
