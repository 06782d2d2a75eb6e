//! What the bodies of a program do, as plain data with a text form: a word for what it is, then its numbers.
//!
//! Compiled twice: in dagsan-fuzz, which makes it of programs, and in the crate that interprets it.

use std::fmt;
use std::str::FromStr;

/// So many locks, and so many atomics, can be on the stack of a body.
pub const OWN: usize = 4;

/// Text that is none of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOne;

/// Enums whose text is the variant's name and its fields, and structs whose text is that of their fields, separated by blanks.
macro_rules! with_text {
    ($(#[$meta:meta])* pub enum $Enum:ident {
        $($(#[$doc:meta])* $Name:ident $({ $($field:ident: $Type:ty),* })?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum $Enum { $($(#[$doc])* $Name $({ $($field: $Type),* })?,)* }

        impl fmt::Display for $Enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($Enum::$Name $({ $($field),* })? => {
                        f.write_str(stringify!($Name))?;
                        $($(write!(f, " {}", $field)?;)*)?
                    })*
                }
                Ok(())
            }
        }

        impl FromStr for $Enum {
            type Err = NotOne;

            fn from_str(text: &str) -> Result<$Enum, NotOne> {
                let mut words = text.split_whitespace();
                let read = match words.next() {
                    $(Some(stringify!($Name)) => $Enum::$Name $({ $($field: word(&mut words)?),* })?,)*
                    _ => return Err(NotOne),
                };
                if words.next().is_none() { Ok(read) } else { Err(NotOne) }
            }
        }
    };
    ($(#[$meta:meta])* pub struct $Struct:ident {
        $($(#[$doc:meta])* $field:ident: $Type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $Struct { $($(#[$doc])* pub $field: $Type,)* }

        impl fmt::Display for $Struct {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let fields = [$(self.$field.to_string()),*];
                f.write_str(&fields.join(" "))
            }
        }

        impl FromStr for $Struct {
            type Err = NotOne;

            fn from_str(text: &str) -> Result<$Struct, NotOne> {
                let mut words = text.split_whitespace();
                let read = $Struct { $($field: word(&mut words)?),* };
                if words.next().is_none() { Ok(read) } else { Err(NotOne) }
            }
        }
    };
}

fn word<'t, T: FromStr>(words: &mut impl Iterator<Item = &'t str>) -> Result<T, NotOne> {
    words.next().and_then(|word| word.parse().ok()).ok_or(NotOne)
}

with_text! {
    /// How much a program has of everything.
    pub struct Sizes {
        /// Bytes.
        arena: usize,
        /// Is the arena a block of the heap?
        heap: bool,
        /// Bytes.
        pages: usize,
        /// Names of promises.
        promises: usize,
        /// Names of futures.
        futures: usize,
        /// Names of locks.
        locks: usize,
        /// Names of synchronisation objects.
        syncs: usize,
        /// Does the main task run in a finish?
        finish: bool,
    }
}

with_text! {
    /// What stands before the operations of a body. The first one is the main task's.
    pub enum Start {
        /// A body that, as a task's, is a procedure or not.
        Body { procedure: bool },
    }
}

with_text! {
    /// How bytes are accessed.
    pub enum Form {
        /// An aligned word, by a call.
        Word,
        /// An aligned word, in the body itself.
        Here,
        /// A word that need not be aligned.
        Unaligned,
        /// An array by value: in one register, or two, of whatever size that is.
        Value,
        /// Byte by byte.
        Each,
        /// A slice, of which the length is not known to the compiler.
        Slice,
        /// An array.
        Array,
    }
}

with_text! {
    /// Bodies, and names of all kinds, are numbers. See the functions of `support.rs`.
    pub enum Op {
        Read { form: Form, place: Place, len: usize },
        Write { form: Form, place: Place, len: usize },
        AtomicLoad { place: Place, len: usize },
        AtomicStore { place: Place, len: usize },
        Free { at: usize, size: usize },
        Async { body: usize },
        Future { name: usize, body: usize },
        Spawn { body: usize },
        Join { first: usize, second: usize },
        Finish { body: usize },
        Scope { body: usize },
        ScopeElsewhere { body: usize },
        Detach { body: usize },
        Call { body: usize },
        Isolated { body: usize },
        Sync,
        GetFuture { name: usize },
        Set { name: usize },
        Get { name: usize },
        /// A lock on the stack of the body.
        OwnLock { name: usize, slot: usize },
        Mutex { name: usize },
        Exclusive { name: usize },
        Shared { name: usize },
        Unlock { name: usize },
        Store { word: Word },
        Update { word: Word },
        Load { word: Word },
        /// An acquire and a release in one.
        AcquireUpdate { word: Word },
        /// Tells that the statement of this number is made.
        Tell { number: usize },
        Yield,
        ThreadScope { body: usize },
        /// A thread of the scope.
        Scoped { body: usize },
        Thread { name: usize, body: usize },
        JoinThread { name: usize },
        DetachThread { body: usize },
        /// Sets a flag, and notifies those who wait for it.
        Notify { name: usize },
        /// Waits for a flag, and tells of every look at it.
        Wait { name: usize, number: usize },
        Send { name: usize },
        /// Tells before and after.
        Receive { name: usize, number: usize },
    }
}

/// Types with two kinds of numbers: a letter and the number.
macro_rules! with_letters {
    ($(#[$meta:meta])* pub enum $Enum:ident {
        $($(#[$doc:meta])* $Name:ident = $letter:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Enum { $($(#[$doc])* $Name(usize),)* }

        impl fmt::Display for $Enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($Enum::$Name(number) => write!(f, concat!($letter, "{}"), number),)*
                }
            }
        }

        impl FromStr for $Enum {
            type Err = NotOne;

            fn from_str(text: &str) -> Result<$Enum, NotOne> {
                $(if let Some(number) = text.strip_prefix($letter) {
                    return number.parse().map($Enum::$Name).map_err(|_| NotOne);
                })*
                Err(NotOne)
            }
        }
    };
}

with_letters! {
    /// Where bytes are.
    pub enum Place {
        /// So far into the arena.
        Arena = "a",
        /// So far into the pages.
        Pages = "p",
    }
}

with_letters! {
    /// The word of a synchronisation object.
    pub enum Word {
        /// On the stack of the body, in that slot.
        Own = "o",
        /// That all share, by name.
        Shared = "s",
    }
}
