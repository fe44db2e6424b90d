"""`runner web`: the queues of several databases as web pages, rendered with Jinja2 and served with Starlette."""
