"""`runner web`: the queues of several databases as a page. Starlette serves what Jinja2 renders; SQL is far away."""
