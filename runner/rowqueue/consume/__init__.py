"""The consumer, from the outside to the inside:

consumer  a consumer as an object: waits for the database, checks the installation, and runs the loop
options   its options, each defined once
loop      starts and ends the threads; the poller claims for idle worker threads
workers   worker threads: handle a batch, finish it and claim the next
taking    the same under --transaction, in the transaction that takes the messages
claims    how many messages a claim asks for; the batches that are held: their leases, and the watch on slow ones
source    what is claimed: queues by name and pattern, and the calls that claim and finish batches
reports   what was done: the log, metrics, and reports to the database
"""

from .options import BadOption, Options, process_name
from .source import QueueSource, Source

__all__ = ["BadOption", "Options", "QueueSource", "Source", "process_name"]
