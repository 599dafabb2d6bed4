use super::*;
use ::base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use toolgate_core::ToolResult;

fn through(block: Value) -> (String, Option<String>) {
    let content = vec![Content::read(Json::from_value(&block)).unwrap()];
    let mut output = Output::Tool(ToolResult {
        content,
        ..ToolResult::default()
    });
    let why = MediaSanitizer::default().work(None, UntrustedContent::Output(&mut output));
    let result = output.into_tool().unwrap();
    let [block] = &result.content[..] else {
        panic!()
    };
    (block.json.as_str().to_owned(), why.first().cloned())
}

fn media(kind: &str, mime: &str, bytes: &[u8]) -> Value {
    json!({"type": kind, "mimeType": mime, "data": STANDARD.encode(bytes)})
}

/// The first bytes of each format, with some padding.
fn forms() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let of = |kind, mime, start: &[u8]| (kind, mime, [start, &[7; 40]].concat());
    vec![
        of("image", "image/png", b"\x89PNG\r\n\x1a\n"),
        of("image", "image/jpeg", &[0xFF, 0xD8, 0xFF, 0xE0]),
        of("image", "image/gif", b"GIF89a"),
        of("image", "image/webp", b"RIFF\x10\0\0\0WEBP"),
        of("image", "image/bmp", b"BM"),
        of("image", "image/tiff", b"II*\0"),
        of("image", "image/x-icon", &[0, 0, 1, 0]),
        of("image", "image/avif", b"\0\0\0\x1cftypavif"),
        of("audio", "audio/wav", b"RIFF\x10\0\0\0WAVE"),
        of("audio", "audio/mpeg", b"ID3\x04"),
        of("audio", "audio/mp3", &[0xFF, 0xFB, 0x90]),
        of("audio", "audio/ogg", b"OggS"),
        of("audio", "audio/flac", b"fLaC"),
        of("audio", "audio/mp4", b"\0\0\0\x1cftypM4A "),
        of("audio", "audio/aac", &[0xFF, 0xF1, 0x50]),
        of("audio", "audio/webm", &[0x1A, 0x45, 0xDF, 0xA3]),
    ]
}

#[test]
fn each_form_passes_as_itself_and_as_no_other() {
    let forms = forms();
    let (mut passed, mut held) = (0, 0);
    for (kind, mime, bytes) in &forms {
        for (other_kind, other, _) in &forms {
            let block = media(other_kind, other, bytes);
            let before = Json::from_value(&block);
            let (after, why) = through(block);
            let same = mime == other
                || [*mime, *other]
                    .iter()
                    .all(|m| ["audio/mpeg", "audio/mp3"].contains(m));
            assert_eq!(why.is_none(), same, "{mime} as {other} ({kind}): {why:?}");
            match why {
                None => {
                    assert_eq!(after, before.as_str());
                    passed += 1;
                }
                Some(why) => {
                    assert!(
                        after.contains("withheld by this gateway") && after.contains(other),
                        "{after} {why}"
                    );
                    held += 1;
                }
            }
        }
    }
    assert_eq!((passed, held), (18, 238));
}

#[test]
fn what_cannot_be_checked_is_withheld() {
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n and more");
    for (block, why) in [
        (
            media("image", "image/svg+xml", b"<svg onload=alert(1)>"),
            "SVG",
        ),
        (media("image", "text/html", b"<script>"), "text/html"),
        (
            media("image", "image/x-unknown", b"x"),
            "is not an image or audio type",
        ),
        (
            media("audio", "image/png", b"\x89PNG\r\n\x1a\n"),
            "image/png",
        ),
        (
            json!({"type": "image", "mimeType": "image/png", "data": png.replace('9', "_")+"_"}),
            "not Base64",
        ),
        (
            json!({"type": "image", "mimeType": "image/png", "data": format!("{png}A===")}),
            "not Base64",
        ),
        (
            json!({"type": "image", "mimeType": "image/png", "data": ""}),
            "of another type",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": STANDARD.encode("<html>")}}),
            "of another type",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "<html>"}}),
            "not Base64",
        ),
    ] {
        let (after, said) = through(block);
        assert!(
            after.contains(why) && after.contains("withheld"),
            "{after}: {said:?}"
        );
        assert!(
            !after.contains("\"blob\"") && !after.contains("\"data\""),
            "{after}"
        );
    }
}

#[test]
fn other_resources_only_need_valid_base64() {
    for block in [
        json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "application/pdf", "blob": "JVBERg=="}}),
        json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "<html>"}}),
        json!({"type": "text", "text": "hello"}),
    ] {
        assert_eq!(through(block).1, None);
    }
}

#[test]
fn withholds_media_over_the_size_limit() {
    let (kind, mime, bytes) = forms().remove(0);
    let block = media(kind, mime, &bytes);
    let size = block["data"].as_str().unwrap().len();
    for (bytes, fits) in [(size, true), (size - 1, false)] {
        let media = MediaSanitizer {
            max_base64_bytes: bytes,
            ..MediaSanitizer::default()
        };
        let mut content = Content::read(Json::from_value(&block)).unwrap();
        let why = media.block(&mut content);
        assert_eq!(why.is_none(), fits);
        let remedy = |why: String| why.ends_with(", which the operator can raise");
        assert!(why.is_none_or(remedy));
    }
}
