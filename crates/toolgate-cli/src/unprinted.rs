//! T62: types that hold a secret cannot be printed or serialized. A violation does not compile.

/// Compiles only if the type does not implement the trait; otherwise two implementations of `Either` apply.
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

/// Secrets, new keys, and links and sessions of the console. Types with a redacting `Debug` are tested in their
/// modules.
#[test]
fn t62_what_holds_a_secret_cannot_be_printed() {
    is_unprinted!(
        toolgate_auth::Secret,
        toolgate_policy::keys::NewApiKey,
        crate::operator::ConsoleSessions,
        crate::oauth::IdentityIssuers,
        crate::oauth::PendingIdentifications,
        toolgate_auth::client::UserIdentification,
    );
    is_not!(toolgate_policy::keys::NewApiKey: Clone);
    is_not!(crate::config::ConfigValue: std::fmt::Display);
    is_not!(crate::config::ConfigValue: serde::Serialize);
    is_not!(crate::config::ServerSettings: std::fmt::Display);
    is_not!(crate::config::ServerSettings: serde::Serialize);
    is_not!(crate::servers::ServerSpec: serde::Serialize);
}
