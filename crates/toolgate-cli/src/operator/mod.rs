//! Operator's view of a running gateway, for the console and the control socket.

pub(crate) mod api;
pub(crate) mod control;
pub(crate) mod item_view;
