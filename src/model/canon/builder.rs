//! Takes a value of serde's apart into nodes, as serde_json would tag them.

use super::node::{Members, Node};
use super::{CanonError, DEPTH_MOST};
use serde::ser::{self, Serialize};

/// Builds the [`Node`] of one value, which stands inside `depth` others.
#[derive(Clone, Copy, Default)]
pub(super) struct Builder {
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
pub(super) struct List {
    inside: Builder,
    items: Vec<Node>,
    variant: Option<&'static str>,
}

/// An object under construction, likewise.
pub(super) struct Object {
    inside: Builder,
    members: Members,
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
        Node::List(self.items).tagged(self.variant)
    }
}

impl Object {
    fn new(builder: Builder, variant: Option<&'static str>) -> Result<Self, CanonError> {
        Ok(Self { inside: builder.inside()?, members: Members::new(), key: None, variant })
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), CanonError> {
        let node = value.serialize(self.inside)?;
        match self.members.insert(key.encode_utf16().collect(), (key.to_owned(), node)) {
            None => Ok(()),
            Some(_) => Err(CanonError::DuplicateKey(key.to_owned())),
        }
    }

    fn finish(self) -> Node {
        Node::Object(self.members).tagged(self.variant)
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<Node, CanonError> {
            Node::integer(value.into())
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
        Node::integer(i128::try_from(value).unwrap_or(i128::MAX))
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
        Ok(value.serialize(self.inside()?)?.tagged(Some(variant)))
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
