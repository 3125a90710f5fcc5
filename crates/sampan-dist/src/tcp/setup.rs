//! How the processes of a group come to be connected.

use super::{LOOK, REASON, Tcp};
use crate::door::Door;
use crate::interrupt;
use crate::store::Store;
use crate::wire::{self, Introduction, unavailable};
use parking_lot::Mutex;
use sampan_core::Result;
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PURPOSES: [&str; 2] = ["collectives", "messages"];

impl Tcp {
    /// Meets the others in a store and connects to each of them.
    pub fn connect(store: Store, rank: usize, size: usize, timeout: Duration, deadline: Instant) -> Result<Tcp> {
        let host = wire::own_address(store.address())?;
        let (door, guests) = Door::open(&host, store.secret())?;
        let own = wire::join(&host, door.port);
        let addresses = store.gather("addresses", rank, size, own.as_bytes(), deadline)?;
        // Processes of another group may call at the same time; the purpose tells them apart.
        let group = addresses.concat();
        let purpose = |what: &str| format!("{what} {}", String::from_utf8_lossy(&group));
        let mut found: Vec<Vec<Option<TcpStream>>> =
            PURPOSES.iter().map(|_| (0..size).map(|_| None).collect()).collect();
        // The later calls the earlier one.
        for (peer, address) in addresses.iter().enumerate().take(rank) {
            for (links, what) in found.iter_mut().zip(PURPOSES) {
                let who = Introduction::new(&purpose(what), rank);
                let address = String::from_utf8_lossy(address);
                let link = wire::call(&address, store.secret(), &who, deadline);
                links[peer] = Some(link.map_err(|e| e.in_op(&format!("rank {rank}, on its way to rank {peer}")))?);
            }
        }
        let known: Vec<[u8; 32]> = PURPOSES.iter().map(|what| Introduction::new(&purpose(what), 0).purpose).collect();
        let mut missing = (size - 1 - rank) * PURPOSES.len();
        while missing > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let guest = match guests.recv_timeout(left.min(LOOK)) {
                Err(_) if left > LOOK => {
                    interrupt::check()?;
                    continue;
                }
                guest => guest,
            };
            let Ok((who, link)) = guest else {
                let absent: Vec<String> =
                    (rank + 1..size).filter(|r| found[1][*r].is_none()).map(|r| r.to_string()).collect();
                return Err(unavailable(format!("ranks {} have not called at {own} in time", absent.join(", "))));
            };
            let Some(at) = known.iter().position(|purpose| *purpose == who.purpose) else { continue };
            match found[at].get_mut(who.rank as usize) {
                Some(place @ None) if who.rank as usize > rank => *place = Some(link),
                _ => continue,
            }
            missing -= 1;
        }
        for link in found.iter().flatten().flatten() {
            link.set_nonblocking(true)?;
        }
        let (direct, links) = (found.pop().unwrap_or_default(), found.pop().unwrap_or_default());
        let locks = || (0..size).map(|_| Mutex::new(())).collect();
        Ok(Tcp {
            rank,
            size,
            links,
            direct,
            // From now on it is asked only for the reason of a failure.
            store: store.hurried(REASON),
            timeout,
            number: Mutex::new(0),
            sending: locks(),
            taking: locks(),
            failed: OnceLock::new(),
        })
    }
}
