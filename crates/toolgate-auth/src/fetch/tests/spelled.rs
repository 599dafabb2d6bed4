//! T33: every spelling of an address that is not public.

use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses that some parser reads from each spelling below.
const TARGETS: [[u8; 4]; 6] = [
    [127, 0, 0, 1],
    [169, 254, 169, 254],
    [10, 0, 0, 1],
    [192, 168, 1, 1],
    [172, 16, 0, 1],
    [100, 64, 0, 1],
];

/// Returns IPv4 spellings that parsers of operating systems accept: other bases, fewer parts, leading zeros, other
/// digits.
fn v4([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let all = u32::from_be_bytes([a, b, c, d]);
    let low = all & 0xffff;
    let (low3, wide) = (all & 0xff_ffff, |text: String| {
        let sign = |c: char| char::from_u32(c as u32 + 0xfee0).unwrap_or(c);
        text.chars()
            .map(|c| if c.is_ascii_digit() { sign(c) } else { c })
            .collect::<String>()
    });
    let plain = format!("{a}.{b}.{c}.{d}");
    vec![
        format!("{all}"),
        format!("{all:#x}"),
        format!("{all:#X}"),
        format!("0{all:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:03}.{b:03}.{c:03}.{d:03}"),
        format!("{a:#x}.{b}.0{c:o}.{d}"),
        format!("{a}.{low3}"),
        format!("{a}.{b}.{low}"),
        format!("{a:#x}.{low3:#x}"),
        format!("{plain}."),
        format!("{plain}.."),
        plain.replace('.', "。"),
        plain.replace('.', "．"),
        plain.replace('.', "%2e"),
        wide(plain.clone()),
        plain.replace('1', "①"),
        format!("{plain}%00"),
        format!("{plain}@8.8.8.8"),
        format!("8.8.8.8@{plain}"),
    ]
}

/// Returns IPv6 spellings of an IPv4 address: mapped, compatible, translated, tunneled; shortened or not.
fn v6(ip: [u8; 4]) -> Vec<String> {
    let v4 = Ipv4Addr::from(ip);
    let [high, low] = [[ip[0], ip[1]], [ip[2], ip[3]]].map(u16::from_be_bytes);
    let whole = |s: [u16; 8]| {
        let parts = s.map(|part| format!("{part:04x}")).join(":");
        [Ipv6Addr::from(s).to_string(), parts.to_uppercase(), parts]
    };
    let mut all = vec![
        format!("::ffff:{v4}"),
        format!("::FFFF:{v4}"),
        format!("0:0:0:0:0:ffff:{v4}"),
        format!("::{v4}"),
        format!("64:ff9b::{v4}"),
        format!("::ffff:{v4}%25eth0"),
    ];
    for parts in [
        [0, 0, 0, 0, 0, 0xffff, high, low],
        [0, 0, 0, 0, 0xffff, 0, high, low],
        [0x64, 0xff9b, 0, 0, 0, 0, high, low],
        [0x64, 0xff9b, 1, 0, 0, 0, high, low],
        [0x2002, high, low, 0, 0, 0, 0, 1],
    ] {
        all.extend(whole(parts));
    }
    all.into_iter().map(|text| format!("[{text}]")).collect()
}

/// Holds: SEC-03
#[tokio::test]
async fn t33_no_spelling_leads_anywhere() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut hosts: Vec<(String, IpAddr)> = Vec::new();
    for target in TARGETS {
        let ip = IpAddr::from(target);
        hosts.extend(v4(target).into_iter().map(|text| (text, ip)));
        hosts.extend(v6(target).into_iter().map(|text| (text, ip)));
    }
    for ip in SPECIAL.iter().chain(&PRIVATE).chain(&LOOPBACK) {
        let ip: IpAddr = ip.parse().unwrap();
        let host = if ip.is_ipv6() {
            format!("[{ip}]")
        } else {
            ip.to_string()
        };
        // As the host itself, and as the address of a name.
        hosts.extend([(host, ip), ("a.test".to_owned(), ip)]);
    }
    let here: IpAddr = [127, 0, 0, 1].into();
    for name in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "ip6-localhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0::1%25lo]",
    ] {
        hosts.push((name.to_owned(), here));
    }
    let (connected, mut unread) = (Arc::new(AtomicUsize::new(0)), 0);
    for (host, ip) in &hosts {
        let (ip, count) = (*ip, connected.clone());
        let hear = move |_: IpAddr| {
            count.fetch_add(1, SeqCst);
        };
        let fetcher = heard(AddressPolicy::public(), move |_| vec![ip], hear);
        for at in [
            format!("https://{host}:{port}/"),
            format!("https://{host}/latest/meta-data"),
        ] {
            match Url::parse(&at) {
                Ok(at) => assert_eq!(
                    kind(&fetcher, at.as_str()).await,
                    FetchErrorKind::Forbidden,
                    "{at:?}"
                ),
                Err(_) => unread += 1,
            }
        }
    }
    assert_eq!(connected.load(SeqCst), 0);
    assert!(listener.accept().is_err(), "somebody came");
    assert!(hosts.len() >= 150 && unread < hosts.len());
    println!(
        "T33: {} spellings and addresses, {} of {} addresses could not even be read, 0 connections",
        hosts.len(),
        unread,
        2 * hosts.len()
    );
}
