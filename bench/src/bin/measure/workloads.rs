//! Measured workloads.

use crate::{
    load::Load,
    wanted::Wanted::{Flat, Instructions, LayerInstructions, Ratio, SystemCalls},
};

/// An echo of 16 bytes over stdio, one at a time; the others say what is different.
const ECHO: Load = Load {
    name: "echo",
    title: "echo over stdio, 1 in flight",
    client: false,
    http: false,
    flight: 1,
    bytes: 16,
    tools: 0,
    tool: "echo",
    lists: false,
    sessions: 0,
    secrets: true,
    layers: 0,
    timed: 20_000,
    counted: 1000,
    audited: false,
    wanted: &[Instructions(28e3), Ratio(0.50)],
};

/// An echo of 16 bytes over HTTP, one connection.
const HTTP: Load = Load {
    name: "http",
    title: "echo over HTTP, 1 connection",
    http: true,
    timed: 10_000,
    wanted: &[Ratio(0.70)],
    ..ECHO
};

/// The echo of a client; its server is the bare one.
const CLIENT: Load = Load {
    name: "client-echo",
    client: true,
    wanted: &[Instructions(40e3)],
    ..ECHO
};

/// All of them.
pub const WORKLOADS: [Load; 21] = [
    ECHO,
    Load {
        name: "echo-64",
        title: "echo over stdio, 64 in flight",
        flight: 64,
        timed: 30_000,
        counted: 2000,
        audited: true,
        wanted: &[Ratio(0.45), SystemCalls(0.3)],
        ..ECHO
    },
    Load {
        name: "echo-2025",
        title: "echo over stdio, 2025-11-25, 1 in flight",
        sessions: 1,
        wanted: &[],
        ..ECHO
    },
    Load {
        name: "echo-3-layers",
        title: "echo over stdio of a server with three layers of your own",
        layers: 3,
        wanted: &[LayerInstructions("echo", 1.5e3)],
        ..ECHO
    },
    HTTP,
    Load {
        name: "http-32",
        title: "echo over HTTP, 32 connections",
        flight: 32,
        timed: 20_000,
        wanted: &[Ratio(0.50)],
        ..HTTP
    },
    Load {
        name: "http-2025",
        title: "echo over HTTP, session of 2025-11-25, 1 connection",
        sessions: 1,
        wanted: &[Ratio(0.60)],
        ..HTTP
    },
    Load {
        name: "http-2025-32",
        title: "echo over HTTP, session of 2025-11-25, 32 connections",
        sessions: 1,
        flight: 32,
        timed: 20_000,
        wanted: &[Ratio(0.47)],
        ..HTTP
    },
    Load {
        name: "list-1000",
        title: "list of 1,000 tools over stdio",
        tools: 1000,
        lists: true,
        timed: 200,
        counted: 40,
        wanted: &[Instructions(1.6e6)],
        ..ECHO
    },
    Load {
        name: "echo-64k",
        title: "echo of 64 KiB over stdio",
        bytes: 64 << 10,
        timed: 500,
        counted: 40,
        wanted: &[Instructions(4.0e6)],
        ..ECHO
    },
    Load {
        name: "echo-64k-bare",
        title: "echo of 64 KiB over stdio, without the search for secrets",
        bytes: 64 << 10,
        secrets: false,
        timed: 500,
        counted: 40,
        wanted: &[Ratio(0.85)],
        ..ECHO
    },
    Load {
        name: "echo-1m",
        title: "echo of 1 MiB over stdio",
        bytes: 1 << 20,
        timed: 60,
        counted: 6,
        wanted: &[Ratio(0.5)],
        ..ECHO
    },
    Load {
        name: "echo-1m-bare",
        title: "echo of 1 MiB over stdio, without the search for secrets",
        bytes: 1 << 20,
        secrets: false,
        timed: 60,
        counted: 6,
        wanted: &[Ratio(0.8)],
        ..ECHO
    },
    Load {
        name: "echo-of-10",
        title: "growth: echo over stdio of a server with 10 tools",
        tools: 10,
        wanted: &[],
        ..ECHO
    },
    Load {
        name: "echo-of-10000",
        title: "growth: echo over stdio of a server with 10,000 tools",
        tools: 10_000,
        wanted: &[Flat("echo-of-10")],
        ..ECHO
    },
    Load {
        name: "http-of-1-session",
        title: "growth: echo over HTTP, 1 session",
        sessions: 1,
        timed: 5_000,
        wanted: &[],
        ..HTTP
    },
    Load {
        name: "http-of-1000-sessions",
        title: "growth: echo over HTTP, 1,000 sessions in turn",
        sessions: 1000,
        timed: 5_000,
        wanted: &[Flat("http-of-1-session")],
        ..HTTP
    },
    CLIENT,
    Load {
        name: "client-echo-64",
        title: "echo over stdio, 64 in flight",
        flight: 64,
        timed: 30_000,
        audited: true,
        wanted: &[],
        ..CLIENT
    },
    Load {
        name: "client-http",
        title: "echo over HTTP, 1 connection",
        http: true,
        timed: 10_000,
        wanted: &[],
        ..CLIENT
    },
    Load {
        name: "client-list-1000",
        title: "list of 1,000 tools over stdio",
        tools: 1000,
        lists: true,
        timed: 100,
        counted: 20,
        wanted: &[],
        ..CLIENT
    },
];
