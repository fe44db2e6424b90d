-- Subscriptions: which of the users' tables are watched, and which changes go to which queue. See docs/decisions/0009_sqlserver.md.

-- A trigger names its table by the id here, so that a subscription is a short row.
CREATE TABLE mq.watched (
    id int IDENTITY (1, 1) NOT NULL CONSTRAINT watched_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT watched_table_once UNIQUE NONCLUSTERED (table_schema, table_name)
);

-- Exactly one of type and topic is given, the other is empty. NONCLUSTERED: a clustered key has 900 bytes at most.
CREATE TABLE mq.subscription (
    watched_id int NOT NULL,
    action char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    topic nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT subscription_pk PRIMARY KEY NONCLUSTERED (watched_id, action, type, topic)
);

-- What triggers hand to mq.send_changes: keys of the changed rows as JSON, in the order in which they are reported.
CREATE TYPE mq.events AS TABLE (
    n int NOT NULL PRIMARY KEY,
    key_json nvarchar(max) NOT NULL,
    old_key_json nvarchar(max)
);
