//! Structs of the outputs, for their schemas.

pub(crate) use crate::audit_output::{FleetVerifyOutput, VerifyOutput};

pub(crate) use super::{
    audit::{AuditCopyOutput, AuditRecordOutput},
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
    passkeys::PasskeyListOutput,
    pins::{PinDiffOutput, PinOutput},
    server_logs::LogLineOutput,
    service::ServiceOutput,
    status::StatusOutput,
    store::StoreTableOutput,
    tasks::TaskOutput,
    uninstall::UninstallOutput,
};
