"""`runner top`: a live screen of the queues of one database, made with Textual, over `seeing`.

`app` starts it. `frame` is the program, `live` what its screens share, and `queues`, `queue` and `message` are these
screens. `asking` has the questions before a change, `growth` remembers what queues held, and `text` writes values.
"""
