//! What is measured.

use crate::load::Load;

/// An echo of 16 bytes over stdio, one at a time; the others say what is different.
const ECHO: Load = Load {
    name: "echo",
    title: "echo over stdio, 1 in flight",
    http: false,
    flight: 1,
    bytes: 16,
    tools: 0,
    lists: false,
    sessions: 0,
    secrets: true,
    timed: 20_000,
    counted: 1000,
    audited: false,
    target: "35 k instructions at most; 0.50 of bare",
};

/// An echo of 16 bytes over HTTP, one connection.
const HTTP: Load = Load {
    name: "http",
    title: "echo over HTTP, 1 connection",
    http: true,
    timed: 10_000,
    target: "65 k instructions at most; 0.65 of bare",
    ..ECHO
};

/// All of them.
pub const WORKLOADS: [Load; 16] = [
    ECHO,
    Load {
        name: "echo-64",
        title: "echo over stdio, 64 in flight",
        flight: 64,
        timed: 50_000,
        counted: 2000,
        audited: true,
        target: "0.40 of bare; 0.3 system calls at most",
        ..ECHO
    },
    Load {
        name: "echo-2025",
        title: "echo over stdio, 2025-11-25, 1 in flight",
        sessions: 1,
        target: "none set",
        ..ECHO
    },
    HTTP,
    Load {
        name: "http-32",
        title: "echo over HTTP, 32 connections",
        flight: 32,
        timed: 30_000,
        target: "0.55 of bare",
        ..HTTP
    },
    Load {
        name: "http-2025",
        title: "echo over HTTP, session of 2025-11-25, 1 connection",
        sessions: 1,
        target: "60 k instructions at most; 0.65 of bare",
        ..HTTP
    },
    Load {
        name: "http-2025-32",
        title: "echo over HTTP, session of 2025-11-25, 32 connections",
        sessions: 1,
        flight: 32,
        timed: 30_000,
        target: "0.55 of bare",
        ..HTTP
    },
    Load {
        name: "list-1000",
        title: "list of 1,000 tools over stdio",
        tools: 1000,
        lists: true,
        timed: 500,
        counted: 40,
        target: "1.6 M instructions at most",
        ..ECHO
    },
    Load {
        name: "echo-64k",
        title: "echo of 64 KiB over stdio",
        bytes: 64 << 10,
        timed: 1000,
        counted: 40,
        target: "4.0 M instructions at most",
        ..ECHO
    },
    Load {
        name: "echo-64k-bare",
        title: "echo of 64 KiB over stdio, nobody looks for secrets in answers",
        bytes: 64 << 10,
        secrets: false,
        timed: 1000,
        counted: 40,
        target: "2.4 M instructions at most",
        ..ECHO
    },
    Load {
        name: "echo-1m",
        title: "echo of 1 MiB over stdio",
        bytes: 1 << 20,
        timed: 60,
        counted: 6,
        target: "0.5 of bare",
        ..ECHO
    },
    Load {
        name: "echo-1m-bare",
        title: "echo of 1 MiB over stdio, nobody looks for secrets in answers",
        bytes: 1 << 20,
        secrets: false,
        timed: 60,
        counted: 6,
        target: "0.8 of bare",
        ..ECHO
    },
    Load {
        name: "echo-of-10",
        title: "growth: echo over stdio of a server with 10 tools",
        tools: 10,
        target: "flat",
        ..ECHO
    },
    Load {
        name: "echo-of-10000",
        title: "growth: echo over stdio of a server with 10,000 tools",
        tools: 10_000,
        counted: 400,
        target: "flat",
        ..ECHO
    },
    Load {
        name: "http-of-1-session",
        title: "growth: echo over HTTP, 1 session",
        sessions: 1,
        timed: 5_000,
        target: "flat",
        ..HTTP
    },
    Load {
        name: "http-of-1000-sessions",
        title: "growth: echo over HTTP, 1,000 sessions in turn",
        sessions: 1000,
        timed: 5_000,
        target: "flat",
        ..HTTP
    },
];
