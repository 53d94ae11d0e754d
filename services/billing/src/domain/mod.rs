//! What billing decides.
//!
//! | module | what it holds |
//! |---|---|
//! | [`payment`] | one attempt to be paid, and the statuses it goes through |
//! | [`decide`] | pure: what a request means, given the rows of its payment |
//! | [`payments`] | into the critical section, and out of it |
//! | [`section`] | the critical section: look, [fault point], ask the processor, record |
//! | [`refund`] | giving money back: one conditional update, no lock needed |
//! | [`processor`] | the calls to the card processor, and how an unknown outcome is asked about again |
//! | [`error`] | why a payment did not go on |

pub(crate) mod decide;
pub(crate) mod error;
pub(crate) mod payment;
pub(crate) mod payments;
pub(crate) mod processor;
pub(crate) mod refund;
pub(crate) mod section;
