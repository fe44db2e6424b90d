"""The consumer: worker threads that handle batches, one poller that finds work for idle ones, one heartbeat for leases.

A worker finishes its batch and claims the next in one call, so a busy queue is worked off without the poller. The
poller looks only while some worker is idle: it asks to be woken, and polls as a floor. Each thread has its own
connection, which is made anew when it is lost; the calls are then tried again, as at-least-once allows.

    loop      starts and ends the threads
    poller    finds work for idle workers            resting  how long it sleeps
    workers   handle batches and finish them         taking   the same in the transaction that takes the messages
    ahead     claims while a worker handles
    claims    how many messages, of which queue      leases   which batches are held, and until when
    sources   the procedures of a queue; those of a polling table stand in rowqueue.polling
    tally     what became of the messages             reports  what the database is told of it
"""

from .loop import Consumer
from .options import LIMITS, BadOption, Options, process_name
from .sources import QueueSource, Source

__all__ = ["LIMITS", "BadOption", "Consumer", "Options", "QueueSource", "Source", "process_name"]
