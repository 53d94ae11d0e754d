//! What checkout decides, without HTTP and without SQL.
//!
//! | module | one idea |
//! |---|---|
//! | [`saga`] | a purchase as a pure machine |
//! | [`purchase`] | what is known of one purchase |
//! | [`steps`] | the saga's steps as calls to inventory and billing |
//! | [`driver`] | round the loop: step, record, write |
//! | [`checkout`] | the parts together |
//! | [`buy`] | the critical section: one purchase per buyer and key |
//! | [`cancel`] | calling a purchase off |

pub mod buy;
pub mod cancel;
pub mod checkout;
pub mod driver;
pub mod purchase;
pub mod saga;
pub mod steps;
