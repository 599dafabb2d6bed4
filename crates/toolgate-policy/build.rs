//! Writes the table of look-alike characters as numbers and one text.
//!
//! That of the library is made of addresses: 160 KB which the loader would fill in at each start of each program, most of
//! which never compare names.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

use std::{env, error::Error, fs, path::PathBuf};
use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // What looks like something else, where its text ends, the text; and what is not seen, from and to.
    let (mut signs, mut ends, mut text) = (Vec::new(), Vec::new(), String::new());
    let mut unseen: Vec<(char, char)> = Vec::new();
    for sign in '\0'..=char::MAX {
        let same = |other: &mut dyn Iterator<Item = char>| other.eq([sign]);
        let alone = sign.to_string();
        // Only characters that are not taken apart before are looked for.
        if !same(&mut alone.nfd()) || same(&mut skeleton(&alone)) {
            continue;
        }
        let like: String = skeleton(&alone).collect();
        if !like.is_empty() {
            text.push_str(&like);
            signs.push(u32::from(sign));
            ends.push(u16::try_from(text.len())?);
        } else if let Some((_, last)) = unseen.last_mut()
            && u32::from(*last) + 1 == u32::from(sign)
        {
            *last = sign;
        } else {
            unseen.push((sign, sign));
        }
    }
    let count = signs.len();
    let table = format!(
        "static SIGNS: [u32; {count}] = {signs:?};\n\
         static ENDS: [u16; {count}] = {ends:?};\n\
         static TEXT: &str = {text:?};\n\
         static UNSEEN: [(char, char); {}] = {unseen:?};\n",
        unseen.len()
    );
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("no folder to write to")?);
    fs::write(folder.join("alike.rs"), table)?;
    Ok(())
}
