//! QR codes in a terminal.

use qrcodegen::{QrCode, QrCodeEcc};

/// Light modules around the code; scanners need them.
const QUIET_ZONE: i32 = 2;

/// Renders a text as a QR code, two rows in each line. Dark modules are black on white, whatever the colors of the terminal.
///
/// # Errors
/// The text is too long for a QR code.
pub(crate) fn render(text: &str) -> Result<String, String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium)
        .map_err(|_| "the link is too long for a QR code; print it without --qr".to_owned())?;
    let (from, to) = (-QUIET_ZONE, code.size() + QUIET_ZONE);
    let mut out = String::new();
    for y in (from..to).step_by(2) {
        out.push_str("\x1b[30;107m");
        for x in from..to {
            out.push(match (code.get_module(x, y), code.get_module(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        out.push_str("\x1b[0m\n");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_each_module_and_a_quiet_zone() {
        let link = "http://127.0.0.1:8665/#token=abc";
        let code = QrCode::encode_text(link, QrCodeEcc::Medium).unwrap();
        let text = render(link).unwrap();
        let rows: Vec<Vec<char>> = text
            .lines()
            .map(|line| line.chars().filter(|c| " █▀▄".contains(*c)).collect())
            .collect();
        let size = code.size() + 2 * QUIET_ZONE;
        assert!(rows.iter().all(|row| row.len() == size as usize));
        for y in 0..size {
            for x in 0..size {
                let c = rows[(y / 2) as usize][x as usize];
                let dark = c == '█' || c == if y % 2 == 0 { '▀' } else { '▄' };
                let module = code.get_module(x - QUIET_ZONE, y - QUIET_ZONE);
                assert_eq!(dark, module, "{x} {y}");
            }
        }
        assert!(render(&"x".repeat(4000)).is_err());
    }
}
