"""`runner top`: a live screen of the queues of one database, made with Textual on top of `seeing`.

`app` starts it. `frame` is the program, `live` the base of its screens `queues`, `queue` and `message`. `asking` has
the questions before changes, `growth` records the sizes of queues, and `text` formats values.
"""
