//! Canonical JSON (RFC 8785, the subset without floats) and its strict reader.
//!
//! One value has one spelling, so bytes can be signed and hashed. The rules, with their source in
//! RFC 8785: no white space (3.2.1); only the escapes `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t` and
//! `\u00xx` in lower-case hex (3.2.2.2); keys sorted by their UTF-16 code units (3.2.3); UTF-8
//! (3.2.4). Beyond it: no floats at all, so that number formatting is never a question, and
//! integers only where every JSON reader holds them exactly, |n| ≤ 2^53-1 (RFC 7493, 2.2).
//! Text is never normalized: two spellings of `é` are two texts.
//!
//! The reader needs no rules of its own. It decodes, encodes again and compares: what is equal is
//! in the encoder's range, so it is canonical, and no field of it was dropped on the way.

use serde::de::DeserializeOwned;
use serde::ser::{self, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;

/// The largest integer, and the negative of the smallest: 2^53-1.
pub const INTEGER_MOST: i64 = (1 << 53) - 1;
/// Arrays and objects stand at most this deep in each other.
pub const DEPTH_MOST: usize = 32;

/// Why a value has no canonical form, or bytes are not one.
#[derive(Debug, thiserror::Error)]
pub enum CanonError {
    #[error("a float stands where only integers are allowed")]
    Float,
    #[error("the integer {0} is beyond 2^53-1")]
    Integer(i128),
    #[error("an object key is not a string")]
    Key,
    #[error("the object key {0:?} stands twice")]
    DuplicateKey(String),
    #[error("nested deeper than {DEPTH_MOST}")]
    TooDeep,
    /// A `Serialize` of ours gave up; the text is its own.
    #[error("cannot be written: {0}")]
    Unwritable(String),
    /// Not JSON, or not of the type that was asked for: `serde_json`'s text, with line and column.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A reading of the bytes exists, but it is spelt otherwise from this byte on (counted from 0).
    #[error("not canonical from byte {0} on")]
    NotCanonical(usize),
}

impl ser::Error for CanonError {
    fn custom<T: Display>(text: T) -> Self {
        Self::Unwritable(text.to_string())
    }
}

/// The canonical bytes of `value`, without a newline after them.
///
/// Enums are tagged as serde_json does it. Refused: floats, integers beyond [`INTEGER_MOST`], keys
/// that are not strings or stand twice in an object, byte strings, depth beyond [`DEPTH_MOST`].
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonError> {
    let mut out = Vec::with_capacity(256);
    value.serialize(Builder { depth: 0 })?.write(&mut out);
    Ok(out)
}

/// Reads exactly what [`encode`] writes, and nothing else.
///
/// Refused as [`CanonError::Unreadable`] is what serde_json cannot read as a `T` (broken JSON or
/// UTF-8, lone surrogates, bytes after the end, a wrong shape); by the error of `encode` what it
/// would not write; as [`CanonError::NotCanonical`] any other spelling of the value, and any field
/// that `T` does not keep.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, CanonError> {
    // serde_json stops at depth 128 by itself, so hostile nesting cannot exhaust the stack.
    let value = serde_json::from_slice(bytes).map_err(CanonError::Unreadable)?;
    let again = encode(&value)?;
    if again == bytes {
        return Ok(value);
    }
    let same = again.iter().zip(bytes).take_while(|(ours, theirs)| ours == theirs).count();
    Err(CanonError::NotCanonical(same))
}

/// A value on its way out: everything checked, objects in order.
enum Node {
    /// `null`, `true`, `false` or an integer, as it is written.
    Plain(String),
    Text(String),
    List(Vec<Self>),
    /// By the key's UTF-16 code units: the order of the map is the order of RFC 8785.
    Object(BTreeMap<Vec<u16>, (String, Self)>),
}

impl Node {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (key, value)) in members.values().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0x00..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[rest..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(format!("{byte:04x}").as_bytes());
        }
        rest = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[rest..]);
    out.push(b'"');
}

fn integer(number: i128) -> Result<Node, CanonError> {
    if number.unsigned_abs() > INTEGER_MOST.unsigned_abs().into() {
        return Err(CanonError::Integer(number));
    }
    Ok(Node::Plain(number.to_string()))
}

/// Builds the [`Node`] of one value, which stands inside `depth` others.
#[derive(Clone, Copy)]
struct Builder {
    depth: usize,
}

impl Builder {
    /// The builder for what stands in a list or object here.
    fn inside(self) -> Result<Self, CanonError> {
        if self.depth == DEPTH_MOST {
            return Err(CanonError::TooDeep);
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

/// A list under construction, in an object of one member if it is an enum variant's content.
struct List {
    inside: Builder,
    items: Vec<Node>,
    variant: Option<&'static str>,
}

/// An object under construction, likewise.
struct Object {
    inside: Builder,
    members: BTreeMap<Vec<u16>, (String, Node)>,
    key: Option<String>,
    variant: Option<&'static str>,
}

impl List {
    fn new(builder: Builder, variant: Option<&'static str>) -> Result<Self, CanonError> {
        Ok(Self { inside: builder.inside()?, items: Vec::new(), variant })
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
        self.items.push(value.serialize(self.inside)?);
        Ok(())
    }

    fn finish(self) -> Node {
        tagged(self.variant, Node::List(self.items))
    }
}

impl Object {
    fn new(builder: Builder, variant: Option<&'static str>) -> Result<Self, CanonError> {
        Ok(Self { inside: builder.inside()?, members: BTreeMap::new(), key: None, variant })
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), CanonError> {
        let node = value.serialize(self.inside)?;
        match self.members.insert(key.encode_utf16().collect(), (key.to_owned(), node)) {
            None => Ok(()),
            Some(_) => Err(CanonError::DuplicateKey(key.to_owned())),
        }
    }

    fn finish(self) -> Node {
        tagged(self.variant, Node::Object(self.members))
    }
}

fn tagged(variant: Option<&'static str>, node: Node) -> Node {
    match variant {
        None => node,
        Some(name) => {
            Node::Object(BTreeMap::from([(name.encode_utf16().collect(), (name.to_owned(), node))]))
        }
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<Node, CanonError> {
            integer(value.into())
        })*
    };
}

impl ser::Serializer for Builder {
    type Ok = Node;
    type Error = CanonError;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Object;
    type SerializeStruct = Object;
    type SerializeStructVariant = Object;

    fn serialize_bool(self, value: bool) -> Result<Node, CanonError> {
        Ok(Node::Plain(value.to_string()))
    }

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64,
    }

    fn serialize_u128(self, value: u128) -> Result<Node, CanonError> {
        integer(i128::try_from(value).unwrap_or(i128::MAX))
    }

    fn serialize_f32(self, _: f32) -> Result<Node, CanonError> {
        Err(CanonError::Float)
    }

    fn serialize_f64(self, _: f64) -> Result<Node, CanonError> {
        Err(CanonError::Float)
    }

    fn serialize_char(self, value: char) -> Result<Node, CanonError> {
        Ok(Node::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<Node, CanonError> {
        Ok(Node::Text(value.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Node, CanonError> {
        // JSON has none, and serde_json's list of numbers is not what anybody wants signed.
        Err(CanonError::Unwritable("a byte string".to_owned()))
    }

    fn serialize_none(self) -> Result<Node, CanonError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, CanonError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Node, CanonError> {
        Ok(Node::Plain("null".to_owned()))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Node, CanonError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Node, CanonError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Node, CanonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Node, CanonError> {
        Ok(tagged(Some(variant), value.serialize(self.inside()?)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List, CanonError> {
        List::new(self, None)
    }

    fn serialize_tuple(self, _: usize) -> Result<List, CanonError> {
        List::new(self, None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List, CanonError> {
        List::new(self, None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List, CanonError> {
        List::new(self.inside()?, Some(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object, CanonError> {
        Object::new(self, None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Object, CanonError> {
        Object::new(self, None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object, CanonError> {
        Object::new(self.inside()?, Some(variant))
    }
}

macro_rules! list {
    ($trait:ident, $method:ident) => {
        impl ser::$trait for List {
            type Ok = Node;
            type Error = CanonError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
                self.push(value)
            }

            fn end(self) -> Result<Node, CanonError> {
                Ok(self.finish())
            }
        }
    };
}

list!(SerializeSeq, serialize_element);
list!(SerializeTuple, serialize_element);
list!(SerializeTupleStruct, serialize_field);
list!(SerializeTupleVariant, serialize_field);

macro_rules! object {
    ($trait:ident) => {
        impl ser::$trait for Object {
            type Ok = Node;
            type Error = CanonError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), CanonError> {
                self.insert(key, value)
            }

            fn end(self) -> Result<Node, CanonError> {
                Ok(self.finish())
            }
        }
    };
}

object!(SerializeStruct);
object!(SerializeStructVariant);

impl ser::SerializeMap for Object {
    type Ok = Node;
    type Error = CanonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonError> {
        // Unlike serde_json, which would make "1" of the key 1: one more spelling to think about.
        let Node::Text(key) = key.serialize(self.inside)? else {
            return Err(CanonError::Key);
        };
        self.key = Some(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonError> {
        let key = self.key.take().ok_or(CanonError::Key)?;
        self.insert(&key, value)
    }

    fn end(self) -> Result<Node, CanonError> {
        Ok(self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize, Serializer};
    use serde_json::{Value, json};

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
            0xe2, 0x82, 0xac, 0x24, 0x5c, 0x75, 0x30, 0x30, 0x30, 0x66, 0x5c, 0x6e, 0x41, 0x27,
            0x42, 0x5c, 0x22, 0x5c, 0x5c, 0x5c, 0x5c, 0x5c, 0x22, 0x2f, 0x22, 0x7d,
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
        for ours in ["9007199254740991", "-9007199254740991", "0", "\"\u{7f}\u{2028}\"", "{\"\":0}"]
        {
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
}
