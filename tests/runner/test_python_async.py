"""rowqueue.aio on async drivers' connections, and on SQLAlchemy on top of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
import rowqueue
from rowqueue.databases import Database, Session
from support import applications

MYSQL = ("mysql", "mariadb")
Opened = AsyncIterator[Any]


@asynccontextmanager
async def psycopg(url: str) -> Opened:
    from psycopg import AsyncConnection
    from psycopg.rows import dict_row

    connection: Any = await AsyncConnection.connect(url, row_factory=dict_row)
    try:
        yield connection
    finally:
        await connection.close()


def _asyncmy(url: str) -> Any:
    import asyncmy
    from asyncmy.cursors import DictCursor

    arguments = applications.mysql_arguments(url)
    return asyncmy.connect(**arguments, init_command=applications.READ_COMMITTED, cursor_cls=DictCursor)


def _aiomysql(url: str) -> Any:
    import aiomysql

    arguments = applications.mysql_arguments(url)
    arguments["db"] = arguments.pop("database")
    return aiomysql.connect(**arguments, init_command=applications.READ_COMMITTED, cursorclass=aiomysql.SSDictCursor)


@asynccontextmanager
async def asyncmy(url: str) -> Opened:
    connection = await _asyncmy(url)
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def aiomysql(url: str) -> Opened:
    connection = await _aiomysql(url)
    try:
        yield connection
    finally:
        connection.close()


def engine_of(url: str) -> Any:
    """An async engine of SQLAlchemy."""
    from psycopg import AsyncConnection
    from sqlalchemy.ext.asyncio import create_async_engine

    if url.startswith("postgresql"):

        async def connect() -> Any:
            return await AsyncConnection.connect(url)

        return create_async_engine("postgresql+psycopg_async://", async_creator=connect)
    arguments = applications.mysql_arguments(url)

    async def connect_mysql() -> Any:
        import aiomysql

        arguments["db"] = arguments.pop("database", None) or arguments["db"]
        return await aiomysql.connect(**arguments, init_command=applications.READ_COMMITTED)

    return create_async_engine("mysql+aiomysql://", async_creator=connect_mysql)


@asynccontextmanager
async def sqlalchemy_core(url: str) -> Opened:
    engine = engine_of(url)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_session(url: str) -> Opened:
    from sqlalchemy.ext.asyncio import AsyncSession

    engine = engine_of(url)
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


WAYS = [
    pytest.param(psycopg, marks=pytest.mark.product("postgresql")),
    *(pytest.param(way, marks=pytest.mark.product(*MYSQL)) for way in (asyncmy, aiomysql)),
    *(
        pytest.param(way, marks=pytest.mark.product("postgresql", *MYSQL))
        for way in (sqlalchemy_core, sqlalchemy_session)
    ),
]
Run = Callable[[Callable[[Any], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def run(request: pytest.FixtureRequest, database: Database) -> Run:
    """Runs a coroutine function with a connection of an application's."""

    def run(work: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            async with request.param(database.url) as connection:
                await work(connection)

        asyncio.run(main())

    return run


@pytest.fixture
def live(session: Session, queue: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [row for state in "NAE" for row in session.call("peek", queue, state, 100)]


def test_a_message_appears_on_commit_and_is_removed_by_a_rollback(run: Run, queue: str, live: Any) -> None:
    async def work(connection: Any) -> None:
        sent = await rowqueue.aio.send(connection, queue, "gone")
        assert sent.created
        await connection.rollback()
        sent = await rowqueue.aio.send(connection, queue, "kept é😀\\\n", headers={"a": 1}, priority=3)
        assert live() == []
        await connection.commit()
        assert [(row["id"], row["body"], row["priority"]) for row in live()] == [(sent.id, "kept é😀\\\n", 3)]

    run(work)


def test_batches_are_claimed_and_finished(run: Run, queue: str, live: Any) -> None:
    async def work(connection: Any) -> None:
        assert await rowqueue.aio.send_batch(connection, queue, [f"body {n}" for n in range(4)]) == 4
        await connection.commit()
        batch = await rowqueue.aio.claim_batch(connection, queue, 2)
        assert [message.body for message in batch] == ["body 0", "body 1"]
        assert await rowqueue.aio.extend_lease(connection, batch[0].batch_key, 50) == 2
        failures = [(batch[1].id, rowqueue.DeadLetter('the "error"\nhas two lines'))]
        following = await rowqueue.aio.finish_batch(connection, batch[0].batch_key, failures, 1)
        assert [message.body for message in following] == ["body 2"]
        assert await rowqueue.aio.complete(connection, following[0].id, following[0].batch_key) == 1
        await connection.commit()
        assert [message.body for message in await rowqueue.aio.take_batch(connection, queue)] == ["body 3"]
        await connection.commit()
        assert await rowqueue.aio.get_result(connection, batch[1].id) == ("E", None, str(failures[0][1]))
        await connection.rollback()
        assert [(row["state"], row["error"]) for row in live()] == [("E", str(failures[0][1]))]

    run(work)


def test_errors_are_the_same_and_the_connection_stays_usable(run: Run, queue: str, live: Any) -> None:
    async def work(connection: Any) -> None:
        for call, number in (
            (rowqueue.aio.send(connection, "", "x"), 50002),
            (rowqueue.aio.send(connection, queue, "a\0b"), 50002),
            (rowqueue.aio.finish_batch(connection, uuid4()), 50008),
        ):
            with pytest.raises(rowqueue.QueueError) as raised:
                await call
            assert raised.value.number == number
            await connection.rollback()
        await rowqueue.aio.send(connection, queue, "after")
        await connection.commit()
        assert [row["body"] for row in live()] == ["after"]

    run(work)


@pytest.mark.parametrize("run", WAYS[:3], indirect=True, ids=lambda way: way.__name__)
def test_a_lost_connection_says_so(run: Run, queue: str) -> None:
    async def work(connection: Any) -> None:
        await rowqueue.aio.send(connection, queue, "x")
        await connection.rollback()
        raw = await rowqueue.databases.applications._async_raw(connection)
        if (closing := raw.close()) is not None:
            await closing
        with pytest.raises(rowqueue.Disconnected):
            await rowqueue.aio.send(connection, queue, "x")

    run(work)


def test_sync_and_async_connections_are_not_taken_for_each_other(run: Run, queue: str, database: Database) -> None:
    async def work(connection: Any) -> None:
        with pytest.raises(TypeError, match=r"rowqueue\.aio|is not a connection"):
            rowqueue.send(connection, queue, "x")
        make = applications.psycopg if database.name == "postgresql" else applications.pymysql
        app = make(database.url)
        with pytest.raises(TypeError, match="is not a connection of"):
            await rowqueue.aio.send(app.connection, queue, "x")
        app.close()

    run(work)
