//! Structs of the outputs, for their schemas.

pub(crate) use super::{
    audit::{AuditRecordOutput, VerifyOutput},
    calls::CallOutput,
    check::CheckOutput,
    connect::HostOutput,
    decisions::{FreezeOutput, GrantOutput},
    doctor::DoctorOutput,
    explain::DryRunOutput,
    import::ImportOutput,
    inbox::PendingOutput,
    items::ItemOutput,
    keys::KeyOutput,
    logins::LoginOutput,
    pins::{PinDiffOutput, PinOutput},
    server_logs::LogLineOutput,
    service::ServiceOutput,
    status::StatusOutput,
    store::StoreTableOutput,
    tasks::TaskOutput,
    uninstall::UninstallOutput,
};
