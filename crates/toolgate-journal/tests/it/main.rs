//! The journal from outside, on real folders and on disks that fail.
