//! Two small languages in which the schema is written: `payload!` for what an event carries and `words!` for the closed
//! sets of words. They exist so that the schema reads as the table that it is and every optional field is left out alike.

/// Declares payloads as plain structs with public fields: camelCase in JSON, in the order written, an `Option` that is
/// `None` left out, a `Vec` that is empty left out, unknown fields passed over.
macro_rules! payload {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::session::event::define::payload!(@ [$(#[$meta])* pub struct $name] [] $($fields)*);
    };
    (@ [$($head:tt)*] [$($out:tt)*] $(#[$doc:meta])* $field:ident: Option<$ty:ty>, $($rest:tt)*) => {
        $crate::session::event::define::payload!(@ [$($head)*] [
            $($out)* $(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$ty>,
        ] $($rest)*);
    };
    (@ [$($head:tt)*] [$($out:tt)*] $(#[$doc:meta])* $field:ident: Vec<$ty:ty>, $($rest:tt)*) => {
        $crate::session::event::define::payload!(@ [$($head)*] [
            $($out)* $(#[$doc])* #[serde(default, skip_serializing_if = "Vec::is_empty")] pub $field: Vec<$ty>,
        ] $($rest)*);
    };
    (@ [$($head:tt)*] [$($out:tt)*] $(#[$doc:meta])* $field:ident: $ty:ty, $($rest:tt)*) => {
        $crate::session::event::define::payload!(@ [$($head)*] [
            $($out)* $(#[$doc])* pub $field: $ty,
        ] $($rest)*);
    };
    (@ [$($head:tt)*] [$($out:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        $($head)* { $($out)* }
    };
}

/// Declares a closed set of words: an enum whose variants are exactly the words written.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word as it is stored and shown.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The value of a word; `None` for any other text.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use {payload, words};
