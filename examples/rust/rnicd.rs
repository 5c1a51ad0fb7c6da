//! What hello.rs uses of librnicd, safely: handles that close themselves, results, and copies of the memory's bytes.
use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};
use std::{fmt, mem, ptr};

/// rnicd.h, by bindgen.
#[allow(non_camel_case_types, dead_code)]
pub mod sys {
    include!(env!("RNICD_BINDINGS"));
}

/// What the library says of a call that failed.
#[derive(Debug)]
pub struct Error {
    step: &'static str,
    reason: String,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {} ({})", self.step, self.message, self.reason)
    }
}

impl std::error::Error for Error {}

/// Copies a string that the library owns.
unsafe fn copied(text: *const c_char) -> String {
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// The result of a call: a count, or the thread's last error.
fn check(step: &'static str, result: c_int) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| unsafe {
        let error = &*sys::rnicd_last_error();
        Error { step, reason: copied(sys::rnicd_reason_name(error.reason)), message: copied(error.message.as_ptr()) }
    })
}

/// RNICD_INIT, which is not carried over: a struct that can grow, with its size and otherwise zeros.
macro_rules! init {
    ($type:ident { $($field:ident : $value:expr),* }) => {
        sys::$type { size: mem::size_of::<sys::$type>(), $($field: $value,)* ..Default::default() }
    };
}

/// A handle of the library, closed when it is dropped. Any order is safe: what is made from it keeps what it needs.
struct Handle<T> {
    raw: *mut T,
    close: unsafe extern "C" fn(*mut T) -> c_int,
}

impl<T> Handle<T> {
    /// `make` writes the handle and returns the library's result.
    fn new(
        step: &'static str,
        close: unsafe extern "C" fn(*mut T) -> c_int,
        make: impl FnOnce(*mut *mut T) -> c_int,
    ) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        check(step, make(&mut raw)).map(|_| Handle { raw, close })
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        unsafe { (self.close)(self.raw) };
    }
}

unsafe extern "C" fn close_session(session: *mut sys::rnicd_session) -> c_int {
    sys::rnicd_close_session(session, ptr::null_mut())
}

/// A session with the daemon.
pub struct Session(Handle<sys::rnicd_session>);

impl Session {
    pub fn open(socket_dir: Option<&CStr>) -> Result<Self, Error> {
        let options = init!(rnicd_session_options { socket_dir: socket_dir.map_or(ptr::null(), CStr::as_ptr) });
        Handle::new("session", close_session, |out| unsafe { sys::rnicd_open_session(&options, out) }).map(Session)
    }
}

/// Registered memory. Peers write into it at any time, so its bytes are copied in and out, never borrowed.
pub struct Region {
    _mr: Handle<sys::rnicd_mr>,
    _memory: Handle<sys::rnicd_memory>,
    mapping: sys::rnicd_memory_info,
    info: sys::rnicd_mr_info,
}

impl Region {
    pub fn register(session: &Session, bytes: u64, flags: u32) -> Result<Self, Error> {
        let options = init!(rnicd_memory_options { bytes: bytes });
        let (mut mapping, mut info) = (init!(rnicd_memory_info {}), init!(rnicd_mr_info {}));
        let memory = Handle::new("memory", sys::rnicd_close_memory, |out| unsafe {
            sys::rnicd_allocate_memory(session.0.raw, &options, out)
        })?;
        check("address", unsafe { sys::rnicd_query_memory(memory.raw, &mut mapping) })?;
        let mr = Handle::new("region", sys::rnicd_close_mr, |out| unsafe {
            sys::rnicd_register_mr(memory.raw, 0, bytes, flags, out)
        })?;
        check("tokens", unsafe { sys::rnicd_query_mr(mr.raw, &mut info) })?;
        Ok(Region { _mr: mr, _memory: memory, mapping, info })
    }

    /// Address of `length` bytes in this process.
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let bytes = self.mapping.bytes as usize;
        assert!(offset <= bytes && length <= bytes - offset, "outside of the memory");
        unsafe { self.mapping.address.cast::<u8>().add(offset) }
    }

    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        unsafe { ptr::copy(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) }
    }

    pub fn get(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        unsafe { ptr::copy(self.at(offset, length), bytes.as_mut_ptr(), length) };
        bytes
    }

    /// Address and token that a peer needs.
    pub fn remote(&self, offset: u64) -> (u64, u32) {
        (self.info.address + offset, self.info.remote_token)
    }

    pub fn sge(&self, offset: u64, length: u32) -> sys::rnicd_sge {
        sys::rnicd_sge { address: self.info.address + offset, length, token: self.info.local_token }
    }
}

/// A completion queue.
pub struct Queue(Handle<sys::rnicd_cq>);

impl Queue {
    pub fn create(session: &Session, depth: u32) -> Result<Self, Error> {
        let make = |out| unsafe { sys::rnicd_create_cq(session.0.raw, depth, 0, out) };
        Handle::new("completion queue", sys::rnicd_close_cq, make).map(Queue)
    }

    /// Waits for the next completions, at most `max`; none after the timeout.
    pub fn poll(&self, max: u32, timeout_ms: i32) -> Result<Vec<sys::rnicd_completion>, Error> {
        let mut completions = vec![sys::rnicd_completion::default(); max as usize];
        let array = completions.as_mut_ptr();
        let count = check("poll", unsafe { sys::rnicd_poll_cq_for(self.0.raw, array, max, timeout_ms) })?;
        completions.truncate(count);
        Ok(completions)
    }
}

/// A queue pair.
pub struct Pair(Handle<sys::rnicd_qp>);

impl Pair {
    pub fn create(queue: &Queue) -> Result<Self, Error> {
        let cq = queue.0.raw;
        let make = |out| unsafe { sys::rnicd_create_qp(cq, cq, ptr::null(), out) };
        Handle::new("queue pair", sys::rnicd_close_qp, make).map(Pair)
    }

    pub fn address(&self) -> Result<Vec<u8>, Error> {
        let mut info = init!(rnicd_qp_info {});
        check("queue pair's address", unsafe { sys::rnicd_query_qp(self.0.raw, &mut info) })?;
        Ok(info.address[..info.address_bytes as usize].to_vec())
    }

    pub fn connect(&self, peer: &[u8]) -> Result<(), Error> {
        let address = peer.as_ptr().cast::<c_void>();
        check("connect", unsafe { sys::rnicd_connect_qp(self.0.raw, address, peer.len()) }).map(drop)
    }

    pub fn post(&self, chain: &mut Chain) -> Result<(), Error> {
        check("post", unsafe { sys::rnicd_post(self.0.raw, chain.0.raw) }).map(drop)
    }
}

/// Work requests.
pub struct Chain(Handle<sys::rnicd_chain>);

impl Chain {
    pub fn create() -> Result<Self, Error> {
        Handle::new("chain", sys::rnicd_close_chain, |out| unsafe { sys::rnicd_create_chain(out) }).map(Chain)
    }

    pub fn write(&mut self, from: &[sys::rnicd_sge], to: (u64, u32), context: u64) -> Result<(), Error> {
        let (sges, count) = (from.as_ptr(), from.len() as u32);
        let result = unsafe { sys::rnicd_chain_write(self.0.raw, sges, count, to.0, to.1, 0, context) };
        check("add", result).map(drop)
    }
}
