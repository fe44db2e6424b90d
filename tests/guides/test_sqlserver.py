"""What docs/operate says of SQL Server alone; the repairs of all engines are in test_repairs.py."""

import re
from pathlib import Path

import pytest
from rowqueue.databases import NotAllowed, open_database
from rowqueue.install import apply as install
from servers.sqlserver import ExternalSQLServer
from shops import OWNERSHIP, SQLServerShop

pytestmark = pytest.mark.product("sqlserver")


def test_every_block_of_the_guide_runs_in_its_order(server: ExternalSQLServer, tmp_path: Path) -> None:
    shop = SQLServerShop(server, server.create_database(), tmp_path)
    try:
        install.apply(open_database(shop.url))
        shop.fill_all_areas()
        for kind, text in shop.blocks():
            if "IDENTITY_INSERT" in text and not shop.babelfish:
                continue  # it wants a second database of its own
            shop.do(kind, text.replace(" shop ", f" {shop.url.rpartition('/')[2]} "))
            # Babelfish asks for a right on every procedure that a procedure calls.
            if (kind, text) in shop.blocks(OWNERSHIP) and not shop.babelfish:
                may_do_what_their_roles_may(shop)
        assert shop("SELECT name FROM sys.objects WHERE SCHEMA_NAME(schema_id) = N'mq'") == []
        assert shop("SELECT name FROM sys.database_principals WHERE name LIKE N'mq[_]%'") == []
    finally:
        server.drop_database(shop.url)
        for name in ("web", "on_duty"):
            server.query(server.url, f"IF SUSER_ID(N'{name}') IS NOT NULL DROP LOGIN {name}")


def may_do_what_their_roles_may(shop: SQLServerShop) -> None:
    account = re.compile("//[^@]*@")
    urls = {name: account.sub(f"//{name}:change%20Me%201@", shop.url) for name in ("web", "on_duty")}
    if not shop("SELECT 1 AS one FROM sys.database_principals WHERE name = N'on_duty'"):
        return
    web, on_duty = (open_database(urls[name]).connect(name) for name in ("web", "on_duty"))
    try:
        web.call("send", "web", "x")
        assert len(web.call("claim_batch", "web", 30)) == 1
        with pytest.raises(NotAllowed):
            web.call("pause", "email")
        assert on_duty.call("resume", "email")[0]["affected"] == 0
        with pytest.raises(NotAllowed):
            on_duty.call("send", "email", "x")
    finally:
        web.close()
        on_duty.close()
