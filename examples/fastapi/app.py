"""A shop with FastAPI and SQLAlchemy: orders and their messages in one transaction, and a consumer in the same process.

RUNNER_DATABASE=postgresql://user:password@localhost/shop uvicorn app:app
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import rowqueue
from fastapi import FastAPI, HTTPException, Response
from sqlalchemy import create_engine, text
from sqlalchemy.orm import sessionmaker

URL = os.environ["RUNNER_DATABASE"]
engine = create_engine(URL.replace("postgresql://", "postgresql+psycopg://"), pool_pre_ping=True)
Session = sessionmaker(engine)


def send_mail(message: rowqueue.Message) -> None:
    """The handler. Its effect and the end of the message are one transaction: it happens exactly once."""
    order = json.loads(message.body)["order"]
    with Session.begin() as session:
        session.execute(text("UPDATE orders SET mailed = mailed + 1 WHERE id = :id"), {"id": order})
        rowqueue.complete(session, message.id, message.batch_key)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The consumer runs in threads of its own, from the start of the application to its end."""
    consumer = app.state.consumer = rowqueue.Consumer(URL, "email", send_mail, batch=1, concurrency=4)
    running = asyncio.create_task(asyncio.to_thread(consumer.run))
    yield
    consumer.stop()  # running handlers finish, the rest is given back
    await running
    engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
def place_order(customer: str) -> dict[str, int]:
    """Save an order and send the message about it, both or neither."""
    with Session.begin() as session:
        insert = text("INSERT INTO orders (customer) VALUES (:customer) RETURNING id")
        order = session.execute(insert, {"customer": customer}).scalar_one()
        rowqueue.send(session, "email", json.dumps({"order": order}))
        if "@" not in customer:
            raise HTTPException(422, "not an address")  # rolls back both
    return {"order": order}


@app.get("/ready")
def ready(response: Response) -> dict[str, bool]:
    """For the load balancer: whether the consumer works."""
    is_ready = app.state.consumer.is_ready()
    response.status_code = 200 if is_ready else 503
    return {"ready": is_ready}
