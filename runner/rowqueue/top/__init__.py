"""`runner top`: a live screen of the queues of one database, made with Textual.

`app` starts it. `desk` owns the one connection, and `data` is what it is asked for. `frame` is the program, `live` what
its screens share; `queues`, `queue` and `message` are these screens. `asking` has the questions before a change, and
`text` makes texts of values.
"""
