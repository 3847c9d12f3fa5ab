//! The messages of pprof's `profile.proto`, with the numbers it gives their fields.
//!
//! `i64` fields that name something are positions in [`Profile::string_table`], whose first string is empty.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What the values of each sample mean.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Files and other sources of code.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// Strings.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// When the recording began, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// How long it took, in nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What is between two samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// How much of it.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Remarks.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of value that is shown if none is asked for; 0 = the last.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// What a value means.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// What is counted.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// In which unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack and its values.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Ids of locations, the innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One value of each type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Labels.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A name with a text or a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// The name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// The text; 0 = none.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The number.
    #[prost(int64, tag = "3")]
    pub num: i64,
    /// Unit of the number.
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

/// A range of addresses and what is there.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    /// Id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// First address behind.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where in the file the first address is.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// Path.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Build-id in hexadecimal digits.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Its locations have functions.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// They have source files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// They have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// They have inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Id of the mapping; 0 = none.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// Address; 0 = not known.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The function and what was inlined into it, the innermost first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Line {
    /// Id of the function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// Number of the line; 0 = not known.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    /// Id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Name for people.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Name for the linker.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// Its first line; 0 = not known.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
