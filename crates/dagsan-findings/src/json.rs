//! Writes JSON, by serde, with what the findings need: no more.
//!
//! The runtime is linked into the user's programs, and the compiler knows all its crates when it compiles them. Those of
//! `serde_json` compare its values with numbers and texts, which makes `assert_eq!(list, &[])` ambiguous in a program
//! that has never heard of JSON. So the runtime writes with this, and the command reads with `serde_json`.
//!
//! Keys of maps must be texts; floating-point numbers must be finite.

use std::fmt::{self, Display, Write};

use serde::Serialize;
use serde::ser;

/// The value as JSON.
pub(crate) fn to_string(value: &impl Serialize) -> Result<String, Error> {
    let mut writer = Writer { text: String::new() };
    value.serialize(&mut writer)?;
    Ok(writer.text)
}

/// What cannot be said in JSON.
#[derive(Debug)]
pub struct Error(String);

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Error {
        Error(message.to_string())
    }
}

struct Writer {
    text: String,
}

impl Writer {
    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                control if control < ' ' => self.display(format_args!("\\u{:04x}", control as u32)),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    fn display(&mut self, what: impl Display) {
        write!(self.text, "{what}").expect("a string takes what is written");
    }

    /// Begins a variant that has contents: `{"Name":`.
    fn variant(&mut self, name: &str) {
        self.text.push('{');
        self.string(name);
        self.text.push(':');
    }

    fn begin(&mut self, open: char, close: &'static str) -> Parts<'_> {
        self.text.push(open);
        Parts { writer: self, first: true, close }
    }
}

/// A list or an object that is being written.
struct Parts<'a> {
    writer: &'a mut Writer,
    first: bool,
    close: &'static str,
}

impl Parts<'_> {
    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.writer.text.push(',');
        }
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.comma();
        value.serialize(&mut *self.writer)
    }

    fn field(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.comma();
        self.writer.string(key);
        self.writer.text.push(':');
        value.serialize(&mut *self.writer)
    }

    fn close(self) -> Result<(), Error> {
        self.writer.text.push_str(self.close);
        Ok(())
    }
}

/// Numbers and booleans are written as they are displayed.
macro_rules! displayed {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method(self, value: $kind) -> Result<(), Error> {
            self.display(value);
            Ok(())
        })*
    };
}

impl<'a> ser::Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    displayed! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return Err(Error(format!("{value} is no number in JSON")));
        }
        self.display(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.text.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant);
        value.serialize(&mut *self)?;
        self.text.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        Ok(self.begin('[', "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Error> {
        Ok(self.begin('[', "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        Ok(self.begin('[', "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant);
        Ok(self.begin('[', "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        Ok(self.begin('{', "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        Ok(self.begin('{', "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant);
        Ok(self.begin('{', "}}"))
    }
}

/// Lists by their elements, objects by their fields.
macro_rules! parts {
    ($($trait:ident $method:ident($($key:ident)?);)*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), Error> {
                parts!(@ self value $($key)?)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
    (@ $self:ident $value:ident) => { $self.element($value) };
    (@ $self:ident $value:ident $key:ident) => { $self.field($key, $value) };
}

parts! {
    SerializeSeq serialize_element();
    SerializeTuple serialize_element();
    SerializeTupleStruct serialize_field();
    SerializeTupleVariant serialize_field();
    SerializeStruct serialize_field(key);
    SerializeStructVariant serialize_field(key);
}

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.comma();
        let start = self.writer.text.len();
        key.serialize(&mut *self.writer)?;
        if !self.writer.text[start..].starts_with('"') {
            return Err(Error("a key is not a text".to_owned()));
        }
        self.writer.text.push(':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Kind {
        Unit,
        One(u8),
        Two(u8, i64),
        Named { a: Option<f64>, b: char },
    }

    #[derive(Serialize)]
    struct All {
        text: &'static str,
        kinds: Vec<Kind>,
        map: BTreeMap<&'static str, (bool, ())>,
        empty: [u8; 0],
    }

    #[test]
    fn it_is_what_serde_json_writes() {
        let all = All {
            text: "tab\t, quote \", back\\slash, line\n, bell \u{7}, é, 🦀",
            kinds: vec![
                Kind::Unit,
                Kind::One(255),
                Kind::Two(0, i64::MIN),
                Kind::Named { a: Some(1.5), b: '"' },
                Kind::Named { a: None, b: 'x' },
            ],
            map: BTreeMap::from([("one", (true, ())), ("two", (false, ()))]),
            empty: [],
        };
        let ours: serde_json::Value = serde_json::from_str(&to_string(&all).unwrap()).unwrap();
        assert_eq!(ours, serde_json::to_value(&all).unwrap());
    }

    #[test]
    fn what_cannot_be_said_is_an_error() {
        assert_eq!(to_string(&f64::NAN).unwrap_err().to_string(), "NaN is no number in JSON");
        assert_eq!(to_string(&BTreeMap::from([(1, 2)])).unwrap_err().to_string(), "a key is not a text");
    }
}
