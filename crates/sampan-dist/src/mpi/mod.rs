//! MPI, for machines whose network only MPI knows well.

mod library;

use crate::moved::Mover;
use crate::wire::unavailable;
use library::{Functions, Handle, check, mpi};
use sampan_core::{Error, Result};
use std::ffi::c_int;

/// MPI counts in ints.
const MOST: usize = 1 << 30;
const TAG: c_int = 7;

/// A communicator of a group.
pub struct Mpi {
    mpi: &'static Functions,
    comm: Handle,
    rank: usize,
    size: usize,
}

fn int(n: usize) -> Result<c_int> {
    match n <= MOST {
        true => Ok(n as c_int),
        false => Err(Error::invalid(format!("{n} bytes in one call of MPI, at most {MOST}"))),
    }
}

/// Lengths and places as MPI wants them, of parts that lie one after the other.
fn laid_out(lens: &[usize]) -> Result<(Vec<c_int>, Vec<c_int>)> {
    let starts = lens.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n)));
    Ok((lens.iter().map(|n| int(*n)).collect::<Result<_>>()?, starts.map(int).collect::<Result<_>>()?))
}

impl Mpi {
    /// A group of some processes of a program that mpirun started; `me` is this process's rank in the job.
    pub fn connect(id: usize, ranks: &[usize], me: usize) -> Result<Mpi> {
        let mpi = mpi()?;
        let (mut own, mut count) = (0, 0);
        // SAFETY: both write a number.
        check("MPI_Comm_rank", unsafe { (mpi.rank)(mpi.world, &mut own) })?;
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe { (mpi.size)(mpi.world, &mut count) })?;
        if own as usize != me || ranks.iter().any(|r| *r >= count as usize) {
            return Err(unavailable(format!(
                "this process is rank {me} of the job but rank {own} of {count} of MPI; was it started by this library's mpirun?"
            ))
            .hint("`mpiexec -n 2 python program.py`, with the mpiexec of the library that SAMPAN_MPI_LIBRARY names"));
        }
        let wanted: Vec<c_int> = ranks.iter().map(|r| *r as c_int).collect();
        let (mut all, mut some, mut comm): (Handle, Handle, Handle) = (0, 0, 0);
        // SAFETY: the handles are this library's, and each call writes one.
        unsafe {
            check("MPI_Comm_group", (mpi.group_of)(mpi.world, &mut all))?;
            check("MPI_Group_incl", (mpi.some_of)(all, wanted.len() as c_int, wanted.as_ptr(), &mut some))?;
            check("MPI_Comm_create_group", (mpi.create)(mpi.world, some, id as c_int, &mut comm))?;
        }
        let rank = ranks.iter().position(|r| *r == me).ok_or_else(|| unavailable("this process is not a member"))?;
        Ok(Mpi { mpi, comm, rank, size: ranks.len() })
    }

    /// Bytes from each to each: lengths, and places in the memory of each side.
    fn all_to_all(
        &self,
        (from, given, starts): (&[u8], &[c_int], &[c_int]),
        (to, taken, places): (&mut [u8], &[c_int], &[c_int]),
    ) -> Result<()> {
        let fits = |lens: &[c_int], at: &[c_int], len: usize| {
            lens.len() == self.size && lens.iter().zip(at).all(|(n, at)| *n as usize + *at as usize <= len)
        };
        assert!(fits(given, starts, from.len()) && fits(taken, places, to.len()), "parts lie inside");
        let m = self.mpi;
        // SAFETY: the parts lie inside the slices, as was checked; the lists have one number for each rank.
        check("MPI_Alltoallv", unsafe {
            (m.all_to_all)(
                from.as_ptr(),
                given.as_ptr(),
                starts.as_ptr(),
                m.byte,
                to.as_mut_ptr(),
                taken.as_ptr(),
                places.as_ptr(),
                m.byte,
                self.comm,
            )
        })
    }
}

impl Mover for Mpi {
    const NAME: &'static str = "mpi";
    // A call of MPI that is left alone would keep the program from ending.
    const DEAF: bool = false;

    fn place(&self) -> (usize, usize) {
        (self.rank, self.size)
    }

    fn barrier(&self) -> Result<()> {
        // SAFETY: the communicator is this library's.
        check("MPI_Barrier", unsafe { (self.mpi.barrier)(self.comm) })
    }

    fn broadcast(&self, root: usize, data: &mut [u8]) -> Result<()> {
        for piece in data.chunks_mut(MOST) {
            let n = int(piece.len())?;
            // SAFETY: the slice has as many bytes.
            check("MPI_Bcast", unsafe {
                (self.mpi.broadcast)(piece.as_mut_ptr(), n, self.mpi.byte, root as c_int, self.comm)
            })?;
        }
        Ok(())
    }

    fn gather(&self, mine: &[u8], all: &mut [u8], lens: &[usize]) -> Result<()> {
        let (n, m) = (int(mine.len())?, self.mpi);
        if lens.iter().any(|len| *len != mine.len()) {
            let (taken, places) = laid_out(lens)?;
            return self.all_to_all((mine, &vec![n; self.size], &vec![0; self.size]), (all, &taken, &places));
        }
        assert!(all.len() == mine.len() * self.size, "room for everybody's bytes");
        // SAFETY: `all` has room for everybody's bytes.
        check("MPI_Allgather", unsafe {
            (m.all_gather)(mine.as_ptr(), n, m.byte, all.as_mut_ptr(), n, m.byte, self.comm)
        })
    }

    fn exchange(&self, from: &[u8], give: &[usize], to: &mut [u8], take: &[usize]) -> Result<()> {
        let ((given, starts), (taken, places)) = (laid_out(give)?, laid_out(take)?);
        self.all_to_all((from, &given, &starts), (to, &taken, &places))
    }

    fn send(&self, to: usize, data: &[u8]) -> Result<()> {
        for piece in data.chunks(MOST) {
            let n = int(piece.len())?;
            // SAFETY: the slice has as many bytes.
            check("MPI_Send", unsafe {
                (self.mpi.send)(piece.as_ptr(), n, self.mpi.byte, to as c_int, TAG, self.comm)
            })?;
        }
        Ok(())
    }

    fn recv(&self, from: usize, data: &mut [u8]) -> Result<()> {
        for piece in data.chunks_mut(MOST) {
            let n = int(piece.len())?;
            // The status is not wanted: null is Open MPI's word for that, one is MPICH's.
            let ignore = if self.mpi.world == 0x4400_0000 { 1 } else { 0 } as *mut std::ffi::c_void;
            // SAFETY: the slice has as many bytes.
            check("MPI_Recv", unsafe {
                (self.mpi.recv)(piece.as_mut_ptr(), n, self.mpi.byte, from as c_int, TAG, self.comm, ignore)
            })?;
        }
        Ok(())
    }
}
