//! Panic hook that withholds formatted panic messages, which may contain call data.

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
    /// True while this thread runs a call.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

static WITHHOLD_EVERYWHERE: AtomicBool = AtomicBool::new(false);

/// Installs a panic hook that withholds formatted panic messages in the whole process from now on. Use it in programs
/// whose logs must not contain call data. The location of a panic is still logged.
#[doc(hidden)]
pub fn withhold_panic_messages() {
    WITHHOLD_EVERYWHERE.store(true, Relaxed);
    install_hook();
}

/// Runs work on a call. The panic hook withholds formatted messages of panics in it.
pub(crate) fn with_panics_withheld<T>(work: impl FnOnce() -> T) -> T {
    struct PreviousInCall(bool);
    impl Drop for PreviousInCall {
        fn drop(&mut self) {
            IN_CALL.set(self.0);
        }
    }
    install_hook();
    let _before = PreviousInCall(IN_CALL.replace(true));
    work()
}

/// Installs our hook in front of the current one, once. A program that sets another hook later replaces it.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            match IN_CALL.get() || WITHHOLD_EVERYWHERE.load(Relaxed) {
                true => write_panic(info),
                false => before(info),
            }
        }));
    });
}

/// Writes the location, and the message if it is a string literal. Write errors are ignored.
fn write_panic(info: &PanicHookInfo<'_>) {
    let words = info.payload().downcast_ref::<&'static str>();
    let words = words.unwrap_or(&"(the message is withheld, because it may contain call data)");
    let place = info.location().map(ToString::to_string);
    let place = place.unwrap_or_else(|| "an unknown location".to_owned());
    let mut to = io::stderr().lock();
    let _ = writeln!(to, "panic at {place}: {words}");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        let _ = writeln!(to, "{trace}");
    }
}
