//! A lock cluster as its clients see it: three real nodes on loopback, real HTTP, real disks.
//!
//! Most tests run the nodes inside the test's process, where one can be shut down and started again; those about
//! `kill -9` run the program. Each test has a cluster of its own.

mod admin;
mod api;
mod backup;
mod bad_input;
mod cancelled;
mod certificates;
mod client;
mod cluster;
mod events;
mod examples;
mod failover;
mod load;
mod locks;
mod membership;
mod pipe;
mod piped_client;
mod process;
mod proxy;
mod rails;
mod sessions;
