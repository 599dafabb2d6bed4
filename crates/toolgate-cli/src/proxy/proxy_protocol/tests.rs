use super::*;
use std::{io::Cursor, time::Duration};
use toolgate_fuzz::{FuzzRun, FuzzTarget};

/// Reads a header; the address, and the bytes that are left.
fn read(bytes: &[u8]) -> (Result<Option<IpAddr>, InvalidProxyHeader>, Vec<u8>) {
    let mut stream = Cursor::new(bytes.to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let address = runtime.unwrap().block_on(read_header(&mut stream));
    let left = stream.position() as usize;
    (address, bytes[left..].to_vec())
}

#[track_caller]
fn accepts(header: &[u8], expected: Option<&str>) {
    let (address, rest) = read(&[header, b"GET /"].concat());
    assert_eq!(address, Ok(expected.map(|text| text.parse().unwrap())));
    assert_eq!(rest, b"GET /", "the next protocol begins behind the header");
}

#[track_caller]
fn rejects(header: &[u8], reason: &str) {
    let error = read(header).0.unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    let mut bytes = V2_SIGNATURE.to_vec();
    bytes.extend([command, family, length[0], length[1]]);
    bytes.extend(body);
    bytes
}

#[test]
fn reads_version_1() {
    accepts(
        b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n",
        Some("192.0.2.1"),
    );
    accepts(
        b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n",
        Some("2001:db8::1"),
    );
    accepts(b"PROXY UNKNOWN\r\n", None);
    accepts(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None);
    let longest = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    assert_eq!(longest.len(), MAX_V1_BYTES);
    accepts(longest.as_bytes(), None);
}

#[test]
fn reads_version_2() {
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0, 80, 1, 187];
    accepts(&v2(0x21, 0x11, &v4), Some("192.0.2.1"));
    let with_extension = [&v4[..], &[4, 0, 1, 0]].concat();
    accepts(&v2(0x21, 0x11, &with_extension), Some("192.0.2.1"));
    let source = "2001:db8::1".parse::<Ipv6Addr>().unwrap().octets();
    let v6 = [&source[..], &[0; 16], &[0, 80, 1, 187]].concat();
    accepts(&v2(0x21, 0x21, &v6), Some("2001:db8::1"));
    accepts(&v2(0x20, 0x00, &[]), None);
    accepts(&v2(0x20, 0x11, &v4), None);
    accepts(&v2(0x21, 0x00, &[1; 7]), None);
    accepts(&v2(0x21, 0x31, &[0; 216]), None);
    accepts(&v2(0x21, 0x00, &[0; MAX_V2_BODY_BYTES]), None);
}

#[test]
fn rejects_everything_else() {
    rejects(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "no PROXY header");
    rejects(b"PROXY TCP4 192.0.2", "ended");
    rejects(b"", "ended");
    for line in [
        "PROXY TCP4 192.0.2.1 10.0.0.1 56324\r\n",
        "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443 1\r\n",
        "PROXY TCP4 192.0.2.1 10.0.0.1 56324 65536\r\n",
        "PROXY TCP4 192.0.2.1 10.0.0.1 56324 +1\r\n",
        "PROXY TCP4 192.0.2.1  10.0.0.1 56324 443\r\n",
        "PROXY TCP4 ::1 ::1 56324 443\r\n",
        "PROXY TCP6 192.0.2.1 10.0.0.1 56324 443\r\n",
        "PROXY UDP4 192.0.2.1 10.0.0.1 56324 443\r\n",
        "PROXY  TCP4 192.0.2.1 10.0.0.1 1 443\r\n",
    ] {
        rejects(line.as_bytes(), "malformed");
    }
    rejects(&[b'P'; 200], "no PROXY header");
    let endless = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat();
    rejects(&endless, "too long");
    rejects(&v2(0x11, 0x11, &[0; 12]), "malformed");
    rejects(&v2(0x22, 0x11, &[0; 12]), "malformed");
    rejects(&v2(0x21, 0x41, &[0; 12]), "malformed");
    rejects(&v2(0x21, 0x11, &[0; 11]), "too short");
    rejects(&v2(0x21, 0x21, &[0; 35]), "too short");
    rejects(&v2(0x21, 0x00, &[0; MAX_V2_BODY_BYTES + 1]), "too long");
}

/// A header is read in the same way whatever follows it, and nothing behind it is read.
fn check_header(input: &[u8]) {
    let (address, rest) = read(input);
    let header = &input[..input.len() - rest.len()];
    if let Ok(address) = address {
        assert_eq!(
            read(&[header, b"more"].concat()),
            (Ok(address), b"more".to_vec())
        );
    }
    assert!(header.len() <= V2_HEAD_BYTES + MAX_V2_BODY_BYTES);
}

#[test]
fn fuzz_proxy_headers_end_where_the_next_protocol_begins() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse::<u64>().unwrap())
    };
    let run = FuzzRun {
        seed: number("TOOLGATE_FUZZ_SEED", 1),
        cases: number("TOOLGATE_FUZZ_CASES", 2_000),
        max_time: Duration::from_secs(number("TOOLGATE_FUZZ_SECONDS", 3)),
    };
    let target = FuzzTarget {
        name: "proxy_header",
        run: check_header,
    };
    let seeds = [
        b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\nGET / HTTP/1.1\r\n".to_vec(),
        b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n".to_vec(),
        b"PROXY UNKNOWN\r\nrest".to_vec(),
        v2(0x21, 0x11, &[192, 0, 2, 1, 10, 0, 0, 1, 0, 80, 1, 187]),
        v2(0x21, 0x21, &[1; 40]),
        v2(0x20, 0x00, b"ab"),
    ];
    if let Err(failure) = run.run(&target, &seeds) {
        panic!("{failure}");
    }
}
