//! The files in operations/: the program accepts the configs in them, and their ports and files fit together.

use crate::help::{TempDir, TestAuthority, output, toolgate};
use std::{fs, path::PathBuf};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../operations")
}

/// Runs `toolgate check` with the variables that the files set for a gateway.
fn check(config: &str, database: &str) {
    let data = TempDir::new("operations");
    // The certificate of a secret.
    let issued = TestAuthority::new().issue(&["tools.example.com"]);
    issued.write(data.path());
    let config = &config
        .replace("/etc/toolgate-tls/tls.crt", "cert.pem")
        .replace("/etc/toolgate-tls/tls.key", "key.pem");
    let file = data.write("toolgate.toml", config);
    let mut check = toolgate();
    check.env("TOOLGATE_DATABASE_URL", database);
    check.env("TOOLGATE_METRICS_TOKEN", "0123456789abcdef0123456789abcdef");
    check
        .env("GATEWAY_HOST", "gateway-1")
        .env("POD_NAME", "toolgate-0");
    let out = output(check.arg("check").arg("--config").arg(file));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
}

/// Returns the text of a block in a YAML file, without its indentation.
fn block(yaml: &str, key: &str) -> String {
    let from = yaml.find(key).unwrap_or_else(|| panic!("{key} in {yaml}"));
    let lines = yaml[from..].lines().skip(1);
    let inside = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    inside.map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn the_program_accepts_the_config_for_compose() {
    let config = fs::read_to_string(folder().join("compose/toolgate.toml")).unwrap();
    let config = config.replace("/usr/bin/toolgate", env!("CARGO_BIN_EXE_toolgate"));
    check(
        &config,
        "postgres://toolgate:password@postgres/toolgate?sslmode=disable",
    );
    let compose = fs::read_to_string(folder().join("compose/compose.yaml")).unwrap();
    for at in [
        "GATEWAY_HOST: gateway-",
        "TOOLGATE_DATABASE_URL: ",
        "TOOLGATE_METRICS_TOKEN: ",
    ] {
        assert!(compose.contains(at), "{at}");
    }
    let nginx = fs::read_to_string(folder().join("compose/nginx.conf")).unwrap();
    let prometheus = fs::read_to_string(folder().join("compose/prometheus.yml")).unwrap();
    for n in 1..=3 {
        assert!(
            nginx.contains(&format!("server gateway-{n}:8665 ")),
            "{nginx}"
        );
        assert!(
            prometheus.contains(&format!("gateway-{n}:9665")),
            "{prometheus}"
        );
    }
}

#[test]
fn the_program_accepts_the_config_for_kubernetes() {
    let manifests = fs::read_to_string(folder().join("kubernetes/toolgate.yaml")).unwrap();
    let config = block(&manifests, "  toolgate.toml: |");
    assert!(config.contains("[store]"), "{config}");
    check(
        &config,
        "postgres://toolgate:password@db.example.com/toolgate",
    );
    // The certificates of `store pki` are named by the host that the config advertises.
    let guide = fs::read_to_string(folder().join("../docs/guides/containers.md")).unwrap();
    assert!(
        guide.contains(
            "toolgate store pki --dir pki toolgate-{0..3}.toolgate-gateways.toolgate.svc"
        )
    );
    assert!(config.contains("advertise = \"${POD_NAME}.toolgate-gateways.toolgate.svc:7445\""));
}

#[test]
fn commands_in_the_image_find_its_config_and_its_gateway() {
    let image = fs::read_to_string(folder().join("container/Containerfile")).unwrap();
    let guide = fs::read_to_string(folder().join("../docs/guides/containers.md")).unwrap();
    for file in [&image, &guide] {
        let line = |start: &str| file.lines().find(|line| line.starts_with(start)).unwrap();
        // Without options, the program looks in the folder `toolgate` of both.
        for (variable, option, default) in [
            ("XDG_CONFIG_HOME=", "--config", "/toolgate/toolgate.toml"),
            ("XDG_DATA_HOME=", "--data", "/toolgate"),
        ] {
            let (_, value) = line("ENV ").split_once(variable).unwrap();
            let folder = value.split(' ').next().unwrap();
            let passed = format!(r#""{option}", "{folder}{default}""#);
            assert!(line("CMD [\"serve\"").contains(&passed), "{passed}");
        }
    }
}
