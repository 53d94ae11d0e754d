//! The front door in front of small stand-ins for everybody else.

mod audit;
mod locks;
mod page;
mod rounds;
mod routing;
mod stub;
mod watching;
