//! OpenMP, end to end: C and C++ that `dagsan cc` compiles, and what is found in it.

mod command;
mod corpus;
mod kernels;
mod support;
