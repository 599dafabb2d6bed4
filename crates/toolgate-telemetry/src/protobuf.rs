//! Writer of protocol buffers: the few field types that OTLP needs, appended to one buffer.
//!
//! Spans are encoded once, at their end, without intermediate objects. The official SDK takes about 25,000 instructions
//! for a span on the same machine; a call may take 1,500 for all of its telemetry.

/// Buffer with encoded fields of a message.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProtobufBuffer(Vec<u8>);

/// Bytes that are reserved for the length of a nested message: a varint of fixed width, for up to 256 MiB.
const LENGTH_BYTES: usize = 4;

impl ProtobufBuffer {
    /// Creates an empty buffer with this capacity in bytes.
    pub(crate) fn with_capacity(bytes: usize) -> ProtobufBuffer {
        ProtobufBuffer(Vec::with_capacity(bytes))
    }

    /// Returns the encoded fields.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the encoded fields.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// Returns the number of encoded bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends fields that are encoded already.
    pub(crate) fn append(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    /// Appends an unsigned integer.
    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    /// Appends a fixed 64-bit integer.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a double.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Appends bytes or a text.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Appends a text.
    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Appends a nested message.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut ProtobufBuffer)) {
        let at = self.0.len();
        self.open_message(field);
        fill(self);
        self.close_message(at);
    }

    /// Begins a nested message, whose tag has one byte.
    pub(crate) fn open_message(&mut self, field: u32) {
        let tag = (field << 3 | 2) as u8;
        self.0.extend_from_slice(&[tag, 0x80, 0x80, 0x80, 0]);
    }

    /// Ends the nested message that begins at a position.
    pub(crate) fn close_message(&mut self, at: usize) {
        let mut length = self.0.len().saturating_sub(at + 1 + LENGTH_BYTES);
        let reserved = self.0.get_mut(at + 1..at + 1 + LENGTH_BYTES);
        for byte in reserved.into_iter().flatten() {
            *byte = *byte & 0x80 | (length & 0x7f) as u8;
            length >>= 7;
        }
    }

    /// Appends packed fixed 64-bit values.
    pub(crate) fn packed64(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>) {
        self.tag(field, 2);
        self.varint(values.len() as u64 * 8);
        for value in values {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Appends an attribute with a text (`KeyValue`).
    pub(crate) fn text_attribute(&mut self, field: u32, key: &str, value: &str) {
        self.bytes_attribute(field, key, value.as_bytes());
    }

    /// Appends an attribute with a text in UTF-8 (`KeyValue`).
    pub(crate) fn bytes_attribute(&mut self, field: u32, key: &str, value: &[u8]) {
        // AnyValue: field 1 is the text.
        let any = 1 + varint_length(value.len()) + value.len();
        let whole = 1 + varint_length(key.len()) + key.len() + 1 + varint_length(any) + any;
        self.tag(field, 2);
        self.varint(whole as u64);
        self.text(1, key);
        self.tag(2, 2);
        self.varint(any as u64);
        self.bytes(1, value);
    }

    /// Replaces bytes at a position.
    pub(crate) fn overwrite(&mut self, place: std::ops::Range<usize>, bytes: &[u8]) {
        if let Some(old) = self.0.get_mut(place).filter(|old| old.len() == bytes.len()) {
            old.copy_from_slice(bytes);
        }
    }

    /// Appends an attribute with an integer (`KeyValue`).
    pub(crate) fn int_attribute(&mut self, field: u32, key: &str, value: u64) {
        self.message(field, |pair| {
            pair.text(1, key);
            pair.message(2, |any| any.uint(3, value));
        });
    }

    #[inline]
    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn varint_length(mut value: usize) -> usize {
    let mut bytes = 1;
    while value >= 0x80 {
        value >>= 7;
        bytes += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_length_is_a_varint_of_fixed_width() {
        let mut buffer = ProtobufBuffer::default();
        buffer.message(1, |inner| inner.uint(2, 300));
        assert_eq!(
            buffer.as_slice(),
            [0x0a, 0x83, 0x80, 0x80, 0x00, 0x10, 0xac, 0x02]
        );
    }

    #[test]
    fn the_length_of_an_attribute_counts_every_byte() {
        for length in [0, 1, 100, 127, 128, 300, 20_000] {
            let value = "x".repeat(length);
            let mut buffer = ProtobufBuffer::default();
            buffer.text_attribute(9, "key", &value);
            let mut whole = ProtobufBuffer::default();
            whole.text(1, "key");
            let mut any = ProtobufBuffer::default();
            any.text(1, &value);
            whole.bytes(2, any.as_slice());
            let mut expected = ProtobufBuffer::default();
            expected.bytes(9, whole.as_slice());
            assert_eq!(buffer, expected, "{length}");
        }
    }
}
