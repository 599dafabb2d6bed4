//! T13: a million numbers through the reader and all that writes foreign values again: not one letter changes.

use super::mutations::Dice;
use toolgate_protocol::{
    json::{Json, JsonLimits, ObjectWriter},
    message::{self, Id, JsonRpcMessage},
};

/// A number as the grammar has them: up to 400 signs, points, exponents.
fn number(dice: &mut Dice) -> String {
    let digits = |dice: &mut Dice, most: usize| -> String {
        (0..=dice.roll(most))
            .map(|_| char::from(b'0' + dice.roll(10) as u8))
            .collect()
    };
    // Long ones are rare, as they are slow.
    let most = [4, 20, 20, 40, 150][dice.roll(5)];
    let mut text = String::new();
    if dice.roll(3) == 0 {
        text.push('-');
    }
    match digits(dice, most).trim_start_matches('0') {
        "" => text.push('0'),
        whole => text.push_str(whole),
    }
    if dice.roll(2) == 0 {
        text.push('.');
        text.push_str(&digits(dice, most));
    }
    if dice.roll(3) == 0 {
        text.push(['e', 'E'][dice.roll(2)]);
        text.push_str(["", "+", "-"][dice.roll(3)]);
        text.push_str(&digits(dice, 3));
    }
    text
}

/// A call with these numbers, read, looked at, and written as it leaves for a server.
fn sent(arguments: &str) -> String {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{arguments}}}}}"#
    );
    let json = Json::read(text.into_bytes(), &JsonLimits::default()).expect("JSON");
    let Ok(JsonRpcMessage::Request { params, .. }) = JsonRpcMessage::read(&json) else {
        panic!("a request");
    };
    let arguments = params.unwrap().get("arguments").unwrap();
    arguments.is_lossy();
    let mut o = ObjectWriter::new();
    o.str("name", "b");
    o.raw("arguments", &arguments);
    message::request(&Id::number(2), "tools/call", Some(&o.finish()))
}

#[test]
fn t13_a_million_numbers_keep_every_letter() {
    const AT_ONCE: usize = 100;
    let share = |seed: u64| {
        let (mut dice, mut count, mut longest) = (Dice(seed), 0_usize, 0);
        for _ in 0..500_000 / AT_ONCE {
            let numbers: Vec<String> = (0..AT_ONCE).map(|_| number(&mut dice)).collect();
            longest = numbers.iter().map(String::len).max().unwrap().max(longest);
            let arguments = format!("{{\"n\":[{}]}}", numbers.join(","));
            let line = sent(&arguments);
            assert!(line.contains(&arguments), "{arguments}");
            count += AT_ONCE;
        }
        (count, longest)
    };
    let shares = [0x9e37_79b9_7f4a_7c15, 0x2545_f491_4f6c_dd1d]
        .map(|seed| std::thread::spawn(move || share(seed)))
        .map(|worker| worker.join().unwrap());
    let count: usize = shares.iter().map(|(count, _)| count).sum();
    let longest = shares.iter().map(|(_, longest)| *longest).max().unwrap();
    println!("T13: {count} numbers of up to {longest} signs, 0 changed");
    assert!(count == 1_000_000 && longest > 250);
}

/// The longest that is taken is kept, and one more is refused, not rounded.
#[test]
fn t13_a_number_over_the_limit_is_refused() {
    for digits in ["9", "1", "4"] {
        let number = digits.repeat(400);
        assert!(sent(&format!("{{\"n\":{number}}}")).contains(&number));
        let over = format!("{{\"n\":{number}0}}");
        assert!(Json::read(over.into_bytes(), &JsonLimits::default()).is_err());
    }
}
