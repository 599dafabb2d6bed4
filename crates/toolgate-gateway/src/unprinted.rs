//! T62: what holds a secret cannot be printed or written down. A slip does not compile.

/// Compiles only where the type does not implement the trait: else two implementations of `Either` fit.
macro_rules! is_not {
    ($type:ty: $($of:tt)+) => {{
        trait Either<Which> {
            fn only_one() {}
        }
        struct Both;
        impl<T: ?Sized> Either<()> for T {}
        impl<T: ?Sized + $($of)+> Either<Both> for T {}
        <$type as Either<_>>::only_one();
    }};
}

macro_rules! is_unprinted {
    ($($type:ty),+ $(,)?) => {$(
        is_not!($type: std::fmt::Debug);
        is_not!($type: std::fmt::Display);
        is_not!($type: serde::Serialize);
    )+};
}

/// Secrets, keys that were just made, links and logins of the console. What has a `Debug` without its secrets is tested
/// where it is.
#[test]
fn t62_what_holds_a_secret_cannot_be_printed() {
    is_unprinted!(
        toolgate_auth::Secret,
        toolgate_policy::keys::NewKey,
        crate::console::Logins,
        crate::signing_in::Users,
        crate::signing_in::Showing,
        toolgate_auth::client::Identification,
    );
    is_not!(toolgate_policy::keys::NewKey: Clone);
    is_not!(crate::config::Given: std::fmt::Display);
    is_not!(crate::config::Given: serde::Serialize);
    is_not!(crate::config::Server: std::fmt::Display);
    is_not!(crate::config::Server: serde::Serialize);
    is_not!(crate::servers::ServerSpec: serde::Serialize);
}
