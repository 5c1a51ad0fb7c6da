// Registers memory, connects two queue pairs, and writes from one half of the memory into the other.
use std::{env, error::Error, ffi::CString, process::ExitCode};

mod rnicd;
use rnicd::{sys, Chain, Pair, Queue, Region, Session};

fn run() -> Result<(), Box<dyn Error>> {
    let socket_dir = env::args().nth(1).map(CString::new).transpose()?;
    let session = Session::open(socket_dir.as_deref())?;
    let mut region = Region::register(&session, 8192, sys::RNICD_MR_REMOTE_WRITE)?;
    let queue = Queue::create(&session, 16)?;
    let (pair, peer) = (Pair::create(&queue)?, Pair::create(&queue)?);
    pair.connect(&peer.address()?)?;
    peer.connect(&pair.address()?)?;

    region.put(0, b"hello");
    let mut chain = Chain::create()?;
    chain.write(&[region.sge(0, 5)], region.remote(4096), 7)?;
    pair.post(&mut chain)?;
    let completions = queue.poll(1, 10_000)?;
    let done = completions.first().ok_or("no completion within 10 seconds")?;
    let text = String::from_utf8(region.get(4096, 5))?;
    println!("request {}: status {:x}, and the other half says {}", done.context, done.ntstatus, text);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error);
            ExitCode::FAILURE
        }
    }
}
