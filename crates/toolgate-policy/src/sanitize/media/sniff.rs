//! Detection of media formats by their first bytes.

/// The MIME types of a format, and a test of its first bytes.
type MediaFormat = (&'static [&'static str], fn(&[u8]) -> bool);

/// The formats that can be detected.
const MEDIA_FORMATS: [MediaFormat; 15] = [
    (&["image/png", "image/apng"], |b| {
        b.starts_with(b"\x89PNG\r\n\x1a\n")
    }),
    (&["image/jpeg", "image/jpg", "image/pjpeg"], |b| {
        b.starts_with(&[0xFF, 0xD8, 0xFF])
    }),
    (&["image/gif"], |b| {
        b.starts_with(b"GIF87a") || b.starts_with(b"GIF89a")
    }),
    (&["image/webp"], |b| riff(b, b"WEBP")),
    (&["image/bmp", "image/x-ms-bmp"], |b| b.starts_with(b"BM")),
    (&["image/tiff"], |b| {
        b.starts_with(b"II*\0") || b.starts_with(b"MM\0*")
    }),
    (&["image/x-icon", "image/vnd.microsoft.icon"], |b| {
        b.starts_with(&[0, 0, 1, 0])
    }),
    (&["image/avif", "image/heic", "image/heif"], |b| {
        brand(b, &[b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"])
    }),
    (
        &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"],
        |b| riff(b, b"WAVE"),
    ),
    (&["audio/mpeg", "audio/mp3"], |b| {
        b.starts_with(b"ID3") || frame(b, 0x02, 0x06)
    }),
    (&["audio/ogg", "audio/opus", "audio/vorbis"], |b| {
        b.starts_with(b"OggS")
    }),
    (&["audio/flac", "audio/x-flac"], |b| b.starts_with(b"fLaC")),
    (&["audio/mp4", "audio/m4a", "audio/x-m4a"], |b| {
        brand(
            b,
            &[
                b"M4A ", b"M4B ", b"mp41", b"mp42", b"isom", b"iso2", b"dash",
            ],
        )
    }),
    (&["audio/aac", "audio/aacp"], |b| frame(b, 0x00, 0x06)),
    (&["audio/webm"], |b| {
        b.starts_with(&[0x1A, 0x45, 0xDF, 0xA3])
    }),
];

/// Checks that data matches its declared MIME type.
pub(super) fn check(said: &str, start: &[u8]) -> Result<(), String> {
    if said == "image/svg+xml" {
        return Err(
            "it is SVG, which can contain scripts; the server can send it as text instead"
                .to_owned(),
        );
    }
    let Some((_, is)) = MEDIA_FORMATS
        .iter()
        .find(|(names, _)| names.contains(&said))
    else {
        let said = crate::humanize::printable(said);
        return Err(format!(
            "its MIME type {said} is not an image or audio type that Toolgate can verify"
        ));
    };
    if is(start) {
        return Ok(());
    }
    let really = MEDIA_FORMATS.iter().find(|(_, is)| is(start));
    let really = really.and_then(|(names, _)| names.first()).copied();
    let really = really.unwrap_or("of another type");
    Err(format!("its MIME type is {said}, but its data is {really}"))
}

fn riff(b: &[u8], form: &[u8]) -> bool {
    b.starts_with(b"RIFF") && b.get(8..12) == Some(form)
}

fn brand(b: &[u8], brands: &[&[u8; 4]]) -> bool {
    let own = b.get(8..12).unwrap_or_default();
    b.get(4..8) == Some(b"ftyp") && brands.iter().any(|brand| *brand == own)
}

/// Returns whether data starts with an MPEG audio frame; the layer bits distinguish MP3 from AAC.
fn frame(b: &[u8], layer: u8, mask: u8) -> bool {
    matches!(b, [0xFF, second, ..] if second & 0xE0 == 0xE0 && second & mask == layer)
}
