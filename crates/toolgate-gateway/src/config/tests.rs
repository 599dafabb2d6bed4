//! Whole configs: right ones, and a table of wrong ones with their words.
