//! The schemas accept everything that serde reads and writes.

use super::*;
use proptest::{collection::vec, option, prelude::*};
use std::fmt::Debug;

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Everything {
    unit: Unit,
    external: Vec<External>,
    tagged: Tagged,
    adjacent: Option<Adjacent>,
    untagged: BTreeMap<String, Untagged>,
    pair: (i32, Option<String>),
    triple: (u16, u16, u16),
    nulls: Vec<Option<Point>>,
    tree: Tree,
    #[serde(default)]
    number: f32,
    #[serde(default)]
    byte: u8,
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,6}"
}

fn external() -> impl Strategy<Value = External> {
    prop_oneof![
        Just(External::Nothing),
        any::<u8>().prop_map(External::One),
        (any::<u8>(), text()).prop_map(|(a, b)| External::Two(a, b)),
        any::<bool>().prop_map(|a| External::Named { a }),
    ]
}

fn tagged() -> impl Strategy<Value = Tagged> {
    let add = (text(), option::of(any::<u32>()));
    prop_oneof![
        add.prop_map(|(item, count)| Tagged::Add { item, count }),
        Just(Tagged::Clear)
    ]
}

fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        any::<i64>().prop_map(Untagged::Number),
        text().prop_map(Untagged::Text),
        vec(text(), 0..3).prop_map(Untagged::Many),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = text().prop_map(|name| Tree {
        name,
        inner: vec![],
    });
    leaf.prop_recursive(3, 8, 3, |inner| {
        (text(), vec(inner, 0..3)).prop_map(|(name, inner)| Tree { name, inner })
    })
}

fn everything() -> impl Strategy<Value = Everything> {
    let unit = prop_oneof![Just(Unit::Celsius), Just(Unit::Kelvin)];
    let adjacent = prop_oneof![any::<u8>().prop_map(Adjacent::A), Just(Adjacent::B)];
    let points = (any::<i64>(), any::<i64>()).prop_map(|(x, y)| Point { x, y });
    let first = (
        unit,
        vec(external(), 0..4),
        tagged(),
        option::of(adjacent),
        proptest::collection::btree_map(text(), untagged(), 0..3),
    );
    let second = (
        (any::<i32>(), option::of(text())),
        any::<(u16, u16, u16)>(),
        vec(option::of(points), 0..3),
        tree(),
        -1e30_f32..1e30,
        any::<u8>(),
    );
    (first, second).prop_map(
        |(
            (unit, external, tagged, adjacent, untagged),
            (pair, triple, nulls, tree, number, byte),
        )| {
            Everything {
                unit,
                external,
                tagged,
                adjacent,
                untagged,
                pair,
                triple,
                nulls,
                tree,
                number,
                byte,
            }
        },
    )
}

/// Removes `null` members, as clients omit optional values.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

fn holds<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + serde::de::DeserializeOwned + JsonSchema + PartialEq + Debug,
{
    let written = serde_json::to_value(value).unwrap();
    accepted(&output_schema::<T>().unwrap(), &written)?;
    let mut read = written;
    leave_out_nulls(&mut read);
    prop_assert_eq!(&serde_json::from_value::<T>(read.clone()).unwrap(), value);
    accepted(&input_schema::<T>().unwrap(), &read)
}

fn accepted(schema: &Value, value: &Value) -> Result<(), TestCaseError> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    if let Err(error) = validator.validate(value) {
        return Err(TestCaseError::fail(format!("{error}\n{value}\n{schema}")));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_serde_takes_is_accepted(value in everything(), tagged in tagged()) {
        holds(&value)?;
        holds(&tagged)?;
    }
}

#[test]
fn portable_to_the_last_member() {
    for schema in [
        input_schema::<Everything>().unwrap(),
        output_schema::<Everything>().unwrap(),
    ] {
        compiles(&schema);
        let text = schema.to_string();
        for word in [
            "\"const\"",
            "\"oneOf\"",
            "\"$schema\"",
            "\"title\"",
            "\"format\"",
            ":true",
            "\"type\":[",
        ] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let schema = input_schema::<Strict>().unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for wrong in [
        json!({}),
        json!({"a": 1}),
        json!({"a": "", "b": 256}),
        json!({"a": "", "c": 1}),
        json!([]),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
        assert!(serde_json::from_value::<Strict>(wrong).is_err());
    }
}
