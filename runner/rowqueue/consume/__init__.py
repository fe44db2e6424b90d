"""The consumer: worker threads handle batches, a poller claims for idle ones, and a heartbeat extends leases.

A worker thread finishes its batch and claims the next one in one call, so a busy queue needs no poller. The poller
claims only while a worker thread is idle. It asks to be woken and also polls, in case no wake-up comes. Each thread has
its own connection and connects again when it is lost. Then it repeats the call: delivery is at least once.

    consumer  a consumer as an object                threads  starts and ends the threads
    poller    claims for idle worker threads         resting  how long it sleeps
    workers   handle batches and finish them         taking   the same, in the transaction that takes the messages
    ahead     claims while the handler runs
    claims    how many messages                      queues   of which queue: patterns and turns
    leases    the batches that are held, and until when
    sources   the procedures of a queue; those of a polling table are in rowqueue.extras.tables
    watch     finishes what is done of a claim while one of its messages takes long
    link      connections that are opened again      health   the port of --health-port
    tally     counts what happened to messages       reports  sends the counts to the database
"""

from .options import LIMITS, BadOption, Options, process_name
from .sources import QueueSource, Source
from .threads import Threads

__all__ = ["LIMITS", "BadOption", "Options", "QueueSource", "Source", "Threads", "process_name"]
