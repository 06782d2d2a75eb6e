//! Threads and channels: who receives comes after who has sent, and after what that one did before.
//!
//! As in `threads.rs`: after each point with a race comes its twin without, and the verdict is the same whoever comes first.
//! A sender learns from a receiver that waits what that one did before, so no race here is between what is done before a
//! receive and what is done after a send, unless nobody waits. Senders are kept until the race is over, so that nobody hears
//! of their end.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::Point;
use crate::shared::{Pointer, Shared, load, store};
use crate::thread_shared::{both, join, lock, word, work};

pub const POINTS: &[Point] = points![
    channel_box_kept,
    channel_box_sent,
    channel_sent_before,
    channel_sent_after,
    channel_many_senders_of_one,
    channel_many_senders,
    channel_first_of_two,
    channel_both_of_two,
    channel_one_message,
    channel_hung_up,
    channel_before_the_reply,
    channel_after_the_reply,
    channel_timed_out,
    channel_waited,
    channel_empty,
    channel_tried_again,
    bounded_buffer_reused,
    bounded_buffer_returned,
    rendezvous_before,
    rendezvous_after,
    rendezvous_with_room,
    rendezvous_both_ways,
    pipeline_passed_early,
    pipeline_passed_on,
    pool_of_one_result,
    pool_of_own_jobs,
    pool_of_results_peeked,
    pool_of_results,
];

/// The sender has kept a pointer to what it has sent.
// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn channel_box_kept() {
    let (sender, receiver) = channel::<Box<u64>>();
    let thread = thread::spawn(work!(
        let received = Pointer(Box::into_raw(receiver.recv().unwrap()));
        load!(received) // race (2)
    ));
    let mut value = Box::new(1);
    let kept = Pointer(black_box(&raw mut *value));
    sender.send(value).unwrap();
    store!(kept, 2); // race (1)
    join([thread]);
}

// expect: race-free, up to atomics
fn channel_box_sent() {
    let (sender, receiver) = channel::<Box<u64>>();
    let thread = thread::spawn(work!(*receiver.recv().unwrap() += 1));
    let mut value = black_box(Box::new(1));
    *value += 1;
    sender.send(value).unwrap();
    join([thread]);
}

// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn channel_sent_before() {
    let (data, (sender, receiver)) = (word(), channel());
    let reader = thread::spawn(work!(
        receiver.recv().unwrap();
        load!(data) // race (2)
    ));
    sender.send(()).unwrap();
    store!(data, 1); // race (1)
    join([reader]);
}

// expect: race-free, up to atomics
fn channel_sent_after() {
    let (data, (sender, receiver)) = (word(), channel());
    let reader = thread::spawn(work!(
        receiver.recv().unwrap();
        load!(data)
    ));
    store!(data, 1);
    sender.send(()).unwrap();
    join([reader]);
}

// expect: race write/write on 8 bytes of heap by 1/2, up to atomics
fn channel_many_senders_of_one() {
    let (data, (sender, receiver)) = (word(), channel());
    let senders = [1, 2].map(|value| (value, sender.clone()));
    let threads = senders.map(|(value, sender)| {
        thread::spawn(work!(
            store!(data, value); // race (1) race (2)
            sender.send(data)
        ))
    });
    assert_eq!(receiver.iter().take(2).count(), 2);
    join(threads);
}

// expect: race-free, up to atomics
fn channel_many_senders() {
    let (sender, receiver) = channel();
    let senders = [1, 2, 3].map(|value| (value, sender.clone()));
    let threads = senders.map(|(value, sender)| {
        thread::spawn(work!(
            let data = word();
            store!(data, value);
            sender.send(data)
        ))
    });
    assert_eq!(receiver.iter().take(3).map(|data| load!(data)).sum::<u64>(), 6);
    join(threads);
}

/// One message is there; whose it is nobody asks.
// expect: race
fn channel_first_of_two() {
    let (words, (sender, receiver)) = ([word(), word()], channel());
    let threads = words.map(|data| {
        let sender = sender.clone();
        thread::spawn(work!(
            store!(data, 1); // race (1)
            sender.send(())
        ))
    });
    receiver.recv().unwrap();
    words.iter().for_each(|data| _ = load!(data)); // race (2)
    join(threads);
}

// expect: race-free, up to atomics
fn channel_both_of_two() {
    let (words, (sender, receiver)) = ([word(), word()], channel());
    let threads = words.map(|data| {
        let sender = sender.clone();
        thread::spawn(work!(
            store!(data, 1);
            sender.send(())
        ))
    });
    receiver.recv().unwrap();
    receiver.recv().unwrap();
    words.iter().for_each(|data| _ = load!(data));
    join(threads);
}

// expect: race write/read on 8 bytes of heap by 1/0, up to atomics
fn channel_one_message() {
    let (data, (sender, receiver)) = (word(), channel());
    let _kept = sender.clone();
    let writer = thread::spawn(work!(
        sender.send(()).unwrap();
        store!(data, 1); // race (1)
        drop(sender);
    ));
    receiver.recv().unwrap();
    load!(data); // race (2)
    join([writer]);
}

/// The receiver is used up when the last sender has gone.
// expect: race-free, up to atomics
fn channel_hung_up() {
    let (data, (sender, receiver)) = (word(), channel());
    let writer = thread::spawn(work!(
        sender.send(()).unwrap();
        store!(data, 1);
        drop(sender);
    ));
    for () in receiver {}
    load!(data);
    join([writer]);
}

// expect: race read/write on 8 bytes of heap by 0/1, up to atomics
fn channel_before_the_reply() {
    let (data, (requests, received), (replies, replied)) = (word(), channel(), channel());
    let server = thread::spawn(work!(
        let request: Pointer<u64> = received.recv().unwrap();
        store!(request, 1); // race (2)
        replies.send(())
    ));
    requests.send(data).unwrap();
    load!(data); // race (1)
    replied.recv().unwrap();
    join([server]);
}

// expect: race-free, up to locks and atomics
fn channel_after_the_reply() {
    let (data, (requests, received), (replies, replied)) = (word(), channel(), channel());
    let server = thread::spawn(work!(for request in received {
        let request: Pointer<u64> = request;
        store!(request, load!(request) + 1);
        replies.send(()).unwrap();
    }));
    for count in 1..4 {
        requests.send(data).unwrap();
        replied.recv().unwrap();
        assert_eq!(load!(data), count);
    }
    drop(requests);
    join([server]);
}

/// Nobody has sent anything.
// expect: race write/read on 8 bytes of heap by 0/1
fn channel_timed_out() {
    let (data, (_sender, receiver)) = (word(), channel::<()>());
    let reader = thread::spawn(work!(
        assert!(receiver.recv_timeout(Duration::from_millis(1)).is_err());
        load!(data) // race (2)
    ));
    store!(data, 1); // race (1)
    join([reader]);
}

// expect: race-free, up to atomics
fn channel_waited() {
    let (data, (sender, receiver)) = (word(), channel());
    let reader = thread::spawn(work!(
        while receiver.recv_timeout(Duration::from_millis(1)).is_err() {}
        load!(data)
    ));
    store!(data, 1);
    sender.send(()).unwrap();
    join([reader]);
}

// expect: race write/read on 8 bytes of heap by 0/1
fn channel_empty() {
    let (data, (_sender, receiver)) = (word(), channel::<()>());
    let reader = thread::spawn(work!(
        assert!(receiver.try_recv().is_err());
        load!(data) // race (2)
    ));
    store!(data, 1); // race (1)
    join([reader]);
}

// expect: race-free, up to atomics
fn channel_tried_again() {
    let (data, (sender, receiver)) = (word(), channel());
    let reader = thread::spawn(work!(
        while receiver.try_recv().is_err() {
            thread::yield_now();
        }
        load!(data)
    ));
    store!(data, 1);
    sender.send(()).unwrap();
    join([reader]);
}

/// A buffer is filled again while it may still be read. There is room for both messages, so nobody waits for the reader.
// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn bounded_buffer_reused() {
    let (data, (sender, receiver)) = (word(), sync_channel::<Pointer<u64>>(2));
    let reader = thread::spawn(work!(for data in receiver.iter().take(2) {
        load!(data); // race (2)
    }));
    for value in 0..2 {
        store!(data, value); // race (1)
        sender.send(data).unwrap();
    }
    join([reader]);
}

/// The reader sends it back.
// expect: race-free, up to atomics
fn bounded_buffer_returned() {
    let ((sender, receiver), (back, returned)) = (sync_channel::<Pointer<u64>>(1), sync_channel(1));
    let reader = thread::spawn(work!(for data in receiver.iter().take(2) {
        load!(data);
        back.send(data).unwrap();
    }));
    let mut data = word();
    for value in 0..2 {
        store!(data, value);
        sender.send(data).unwrap();
        data = returned.recv().unwrap();
    }
    join([reader]);
}

/// Both have met, and then do what they like.
// expect: race
fn rendezvous_before() {
    let (data, (sender, receiver)) = (word(), sync_channel(0));
    let reader = thread::spawn(work!(
        receiver.recv().unwrap();
        load!(data) // race (1)
    ));
    sender.send(()).unwrap();
    store!(data, 1); // race (2)
    join([reader]);
}

// expect: race-free, up to atomics
fn rendezvous_after() {
    let (data, (sender, receiver)) = (word(), sync_channel(0));
    let reader = thread::spawn(work!(
        receiver.recv().unwrap();
        load!(data)
    ));
    store!(data, 1);
    sender.send(()).unwrap();
    join([reader]);
}

/// Where there is room for a message, the sender does not wait for the receiver, who does not sleep either.
// expect: race read/write on 8 bytes of heap by 0/1, up to atomics
fn rendezvous_with_room() {
    let (data, (sender, receiver)) = (word(), sync_channel(1));
    let writer = thread::spawn(work!(
        store!(data, 1); // race (2)
        while receiver.try_recv().is_err() {
            thread::yield_now();
        }
    ));
    sender.send(()).unwrap();
    load!(data); // race (1)
    join([writer]);
}

/// Without room, a send is over after the receiver has come.
// expect: race-free, up to atomics
fn rendezvous_both_ways() {
    let (data, (sender, receiver)) = (word(), sync_channel(0));
    let writer = thread::spawn(work!(
        store!(data, 1);
        while receiver.try_recv().is_err() {
            thread::yield_now();
        }
    ));
    sender.send(()).unwrap();
    load!(data);
    join([writer]);
}

/// The second of three threads passes on what it has not finished.
// expect: race write/read on 8 bytes of heap by 2/3, up to atomics
fn pipeline_passed_early() {
    let ((sender, first), (forward, second)) = (channel(), channel());
    let _kept = forward.clone();
    let threads = [
        thread::spawn(work!(sender.send(word()))),
        thread::spawn(work!(
            let data = first.recv().unwrap();
            forward.send(data).unwrap();
            store!(data, 1); // race (1)
        )),
        thread::spawn(work!(load!(second.recv().unwrap()))), // race (2)
    ];
    join(threads);
}

// expect: race-free, up to atomics
fn pipeline_passed_on() {
    let ((sender, first), (forward, second)) = (channel(), channel());
    let threads = [
        thread::spawn(work!(for _ in 0..3 {
            sender.send(word()).unwrap();
        })),
        thread::spawn(work!(for data in first {
            store!(data, 1);
            forward.send(data).unwrap();
        })),
        thread::spawn(work!(second.iter().map(|data| load!(data)).sum::<u64>())),
    ];
    join(threads);
}

/// Each of two workers takes one job. They share the receiver, and the result.
// expect: race write/write on 8 bytes of stack by 1/2, up to locks and atomics
fn pool_of_one_result() {
    let (result, (sender, jobs)) = (Shared::new(0u64), channel());
    [1, 2].into_iter().for_each(|job| sender.send(job).unwrap());
    let jobs = Mutex::new(jobs);
    both(|_| {
        let job = lock(&jobs).recv().unwrap();
        store!(result, job); // race (1) race (2)
    });
}

// expect: race-free, up to locks and atomics
fn pool_of_own_jobs() {
    let (sender, jobs) = channel();
    [word(), word()].into_iter().for_each(|job| sender.send(job).unwrap());
    let jobs = Mutex::new(jobs);
    both(|_| {
        let job = lock(&jobs).recv().unwrap();
        store!(job, load!(job) + 1);
    });
}

/// The results are there when the workers say so; one of them is looked at before.
// expect: race read/write on 8 bytes of heap by 0/3, up to atomics
fn pool_of_results_peeked() {
    let (words, (sender, results)) = ([word(), word(), word()], channel());
    let threads = words.map(|result| {
        let sender = sender.clone();
        thread::spawn(work!(
            store!(result, 1); // race (2)
            sender.send(result)
        ))
    });
    load!(words[2]); // race (1)
    assert_eq!(results.iter().take(3).map(|result| load!(result)).sum::<u64>(), 3);
    join(threads);
}

// expect: race-free, up to atomics
fn pool_of_results() {
    let (words, (sender, results)) = ([word(), word(), word()], channel());
    let threads = words.map(|result| {
        let sender = sender.clone();
        thread::spawn(work!(
            store!(result, 1);
            sender.send(result)
        ))
    });
    assert_eq!(results.iter().take(3).map(|result| load!(result)).sum::<u64>(), 3);
    load!(words[2]);
    join(threads);
}
