"""`runner top`: a live screen of the queues of one database, made with Textual.

`desk` owns the one connection; `app` is the program and its first screen, `queue` and `message` are the screens that Enter
opens, `asking` is what is asked before a change, and `text` makes texts of values.
"""
