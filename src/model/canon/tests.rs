//! One value has one spelling: held against the RFC and another implementation.

use super::*;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    String::from_utf8(encode(value).unwrap()).unwrap()
}

fn refused(bytes: impl AsRef<[u8]>) -> CanonError {
    let bytes = bytes.as_ref();
    decode::<Value>(bytes).expect_err(&String::from_utf8_lossy(bytes))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { b: bool, a: Option<i64> },
}

/// No `deny_unknown_fields`: the reader must refuse them by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    kinds: Vec<Kind>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    counts: BTreeMap<String, u32>,
    pair: (char, ()),
}

fn record() -> Record {
    Record {
        kinds: vec![
            Kind::Unit,
            Kind::Newtype(7),
            Kind::Tuple(1, "x".to_owned()),
            Kind::Struct { b: true, a: None },
        ],
        name: Some("naïve \u{1f600}\n".to_owned()),
        counts: BTreeMap::from([("z".to_owned(), 1), ("a".to_owned(), 2)]),
        pair: ('/', ()),
    }
}

#[test]
fn every_shape_has_serde_jsons_tags_and_sorted_keys() {
    let wanted = concat!(
        r#"{"counts":{"a":2,"z":1},"kinds":["unit",{"newtype":7},{"tuple":[1,"x"]},"#,
        r#"{"struct":{"a":null,"b":true}}],"name":"naïve 😀\n","pair":["/",null]}"#,
    );
    assert_eq!(text(&record()), wanted);
    assert_eq!(serde_jcs::to_string(&record()).unwrap(), wanted);
    assert_eq!(decode::<Record>(wanted.as_bytes()).unwrap(), record());
}

/// RFC 8785, 3.2.3: the order of the keys, their escapes, and nothing else escaped.
#[test]
fn the_rfcs_key_order() {
    let value: Value = serde_json::from_str(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",
            "\u00f6":"Latin Small Letter O With Diaeresis"}"#,
    )
    .unwrap();
    let wanted = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
        \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
        \"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(text(&value), wanted);
    assert!(decode::<Value>(wanted.as_bytes()).is_ok());
}

/// RFC 8785, 3.2.2 and 3.2.4: the string and the literals of the sample, bytes as printed there.
#[test]
fn the_rfcs_string_and_literals() {
    let value: Value = serde_json::from_str(
        r#"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals":[null,true,false]}"#,
    )
    .unwrap();
    let mut wanted = br#"{"literals":[null,true,false],"string":""#.to_vec();
    wanted.extend_from_slice(&[
        0xe2, 0x82, 0xac, 0x24, 0x5c, 0x75, 0x30, 0x30, 0x30, 0x66, 0x5c, 0x6e, 0x41, 0x27, 0x42,
        0x5c, 0x22, 0x5c, 0x5c, 0x5c, 0x5c, 0x5c, 0x22, 0x2f, 0x22, 0x7d,
    ]);
    assert_eq!(encode(&value).unwrap(), wanted);
}

#[test]
fn the_reader_refuses_what_the_writer_would_not_write() {
    #[rustfmt::skip]
    let others = [
        "", " 1", "1 ", "1\n", "[1, 2]", "{\"b\":1,\"a\":2}", "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"a\":2}", "1.0", "1e2", "0.5", "-0", "01", "+1", "\"\\/\"", "\"\\u0041\"",
        "\"\\u000A\"", "\"\\u000a\"", "\"\\u001F\"", "\"\\u007f\"", "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"", "\"\\ude00\"", "\"\u{1}\"", "nul", "[1,]", "{\"a\":1,}", "1]", "NaN",
        "\u{feff}1", "9007199254740992", "-9007199254740992", "18446744073709551615",
        "340282366920938463463374607431768211455", "'a'", "//\n1",
    ];
    for other in others {
        refused(other);
    }
    refused(b"\"\xff\"");
    // A surrogate in UTF-8 (CESU-8), and an overlong encoding.
    refused(b"\"\xed\xa0\xbd\"");
    refused(b"\"\xc0\xaf\"");
    assert!(matches!(refused("[1, 2]"), CanonError::NotCanonical(3)));
    assert!(matches!(refused("1.0"), CanonError::Float));
    assert!(matches!(refused("-0"), CanonError::Float));
    assert!(matches!(refused("9007199254740992"), CanonError::Integer(9_007_199_254_740_992)));
    for ours in ["9007199254740991", "-9007199254740991", "0", "\"\u{7f}\u{2028}\"", "{\"\":0}"] {
        assert!(decode::<Value>(ours.as_bytes()).is_ok(), "{ours}");
    }
}

#[test]
fn the_writer_refuses_what_json_cannot_hold() {
    assert!(matches!(encode(&1.5), Err(CanonError::Float)));
    // serde_json would write null for it.
    assert!(matches!(encode(&f64::NAN), Err(CanonError::Float)));
    assert!(matches!(encode(&[0f32]), Err(CanonError::Float)));
    assert!(matches!(encode(&u128::MAX), Err(CanonError::Integer(_))));
    assert!(matches!(encode(&i128::MIN), Err(CanonError::Integer(_))));
    assert!(matches!(encode(&u64::MAX), Err(CanonError::Integer(_))));
    assert!(matches!(encode(&BTreeMap::from([(1, 2)])), Err(CanonError::Key)));
    assert!(matches!(encode(&BTreeMap::from([(None::<String>, 2)])), Err(CanonError::Key)));

    struct Twice;
    impl Serialize for Twice {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("a", 2)])
        }
    }
    assert!(matches!(encode(&Twice), Err(CanonError::DuplicateKey(key)) if key == "a"));

    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(b"a")
        }
    }
    assert!(matches!(encode(&Bytes), Err(CanonError::Unwritable(_))));
}

#[test]
fn no_field_is_dropped_and_no_default_is_filled_in() {
    let whole = text(&record());
    let more = whole.replacen("\"pair\"", "\"pail\":1,\"pair\"", 1);
    assert!(matches!(decode::<Record>(more.as_bytes()), Err(CanonError::NotCanonical(_))));
    // `name` is absent when unknown, so an explicit null is another spelling.
    let null = whole.replacen("\"naïve 😀\\n\"", "null", 1);
    assert!(matches!(decode::<Record>(null.as_bytes()), Err(CanonError::NotCanonical(_))));
}

#[test]
fn depth_is_bounded_both_ways() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode::<Value>(nested(DEPTH_MOST).as_bytes()).is_ok());
    assert!(matches!(refused(nested(DEPTH_MOST + 1)), CanonError::TooDeep));
    assert!(matches!(refused(nested(200)), CanonError::Unreadable(_)));
    assert!(matches!(refused("[".repeat(1_000_000)), CanonError::Unreadable(_)));
    assert!(matches!(refused("{\"a\":".repeat(1_000_000)), CanonError::Unreadable(_)));

    // Tags count: an object and the list in it.
    let mut value = json!(1);
    for _ in 0..DEPTH_MOST - 2 {
        value = json!([value]);
    }
    assert!(encode(&BTreeMap::from([("a", BTreeMap::from([("b", &value)]))])).is_ok());
    #[derive(Serialize)]
    enum Deep<'a> {
        Pair(&'a Value, u8),
    }
    assert!(encode(&Deep::Pair(&value, 1)).is_ok());
    assert!(matches!(encode(&[Deep::Pair(&value, 1)]), Err(CanonError::TooDeep)));
}

fn key() -> impl Strategy<Value = String> {
    // Around the place where UTF-8 and UTF-16 order differ: U+E000..U+FFFF against the rest.
    prop_oneof![
        "[a-c]{0,3}",
        "[\\PC\\p{Cc}]{0,3}",
        "[\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}"
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-INTEGER_MOST..=INTEGER_MOST).prop_map(Value::from),
        (-9i64..=9).prop_map(Value::from),
        key().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_another_implementation(value in value()) {
        let bytes = encode(&value).unwrap();
        prop_assert_eq!(&bytes, &serde_jcs::to_vec(&value).unwrap());
        prop_assert_eq!(decode::<Value>(&bytes).unwrap(), value);
    }

    #[test]
    fn any_bytes_read_are_the_bytes_written(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(value) = decode::<Value>(&bytes) {
            prop_assert_eq!(encode(&value).unwrap(), bytes);
        }
    }

    #[test]
    fn any_near_json_read_is_what_is_written(text in "[\\[\\]{},:\"0-9a\\\\u eE.+-]{0,12}") {
        if let Ok(value) = decode::<Value>(text.as_bytes()) {
            prop_assert_eq!(encode(&value).unwrap(), text.into_bytes());
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_another_value(
        value in value(), at in any::<prop::sample::Index>(), mask in 1u8..,
    ) {
        let mut bytes = encode(&value).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
        if let Ok(other) = decode::<Value>(&bytes) {
            prop_assert_ne!(other, value);
        }
    }
}

#[test]
fn every_changed_byte_of_a_record_is_refused_or_another_record() {
    let bytes = encode(&record()).unwrap();
    for at in 0..bytes.len() {
        for byte in (0..=255).filter(|byte| *byte != bytes[at]) {
            let mut changed = bytes.clone();
            changed[at] = byte;
            if let Ok(other) = decode::<Record>(&changed) {
                assert_ne!(other, record(), "byte {at} as {byte}");
            }
        }
    }
}
