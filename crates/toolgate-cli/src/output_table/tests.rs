use super::*;

fn table() -> OutputTable {
    let mut table = OutputTable::new(&[
        TableColumn::Whole,
        TableColumn::State,
        TableColumn::Cut,
        TableColumn::Wrap,
    ]);
    let long =
        "a description that goes on and on and does not fit into any terminal of a usual width";
    table.add([
        "files.read_text_file",
        "allow",
        "key:continuous-integration",
        long,
    ]);
    table.add([
        "a",
        "deny",
        "ci",
        "短い説明 and {\"path\":\"/a/very/long/path/without/any/space/in/it/at/all/for/a/line\"}",
    ]);
    table.add(["b", "ask", "", ""]);
    table
}

#[test]
fn no_line_is_wider_than_the_terminal_and_names_stay_whole() {
    for width in [24, 40, 60, 80, 120, 200, 400] {
        let text = table().render(Some(width), false);
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(text.contains("files.read_text_file"), "{width}: {text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("usual width"), "wrapped, not cut: {text}");
    }
    let narrow = table().render(Some(80), false);
    assert!(narrow.contains('…'), "{narrow}");
}

#[test]
fn outside_of_a_terminal_nothing_is_cut_and_each_row_is_a_line() {
    let text = table().render(None, false);
    assert_eq!(text.lines().count(), 3);
    assert!(!text.contains('…') && text.contains("continuous-integration  a description that"));
    assert!(text.lines().next().unwrap().ends_with("usual width"));
}

#[test]
fn colors_do_not_change_the_widths() {
    let (plain, painted) = (
        table().render(Some(80), false),
        table().render(Some(80), true),
    );
    assert!(painted.contains("\u{1b}[32mallow\u{1b}[0m"), "{painted}");
    let mut stripped = painted;
    for code in ["\u{1b}[0m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn lines_break_between_words_and_wide_characters_count_twice() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("one\ntwo", 7), ["one", "two"]);
    assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
    assert_eq!(wrap("短い説明", 4), ["短い", "説明"]);
    assert_eq!(cut("短い説明", 5), "短い…");
    assert_eq!(cut("short", 5), "short");
}
