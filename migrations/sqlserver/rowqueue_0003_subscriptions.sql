-- The tables of subscriptions: the watched tables, and the types that get messages about their changes. See
-- docs/decisions/0009_sqlserver.md.

-- A trigger names its table by this id, which keeps the rows of mq.subscription short.
CREATE TABLE mq.watched (
    id int IDENTITY (1, 1) NOT NULL CONSTRAINT watched_pk PRIMARY KEY,
    table_schema nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    table_name nvarchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT watched_table_once UNIQUE NONCLUSTERED (table_schema, table_name)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Watched tables, whose triggers send messages.',
    N'SCHEMA', N'mq', N'TABLE', N'watched';

-- NONCLUSTERED: a clustered key has at most 900 bytes.
CREATE TABLE mq.subscription (
    watched_id int NOT NULL,
    action char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    topic nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT subscription_pk PRIMARY KEY NONCLUSTERED (watched_id, action, type, topic)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Inserts (I), updates (U) or deletes (D) in a watched table send messages to this type, or to the types bound to this topic. Exactly one of type and topic is set; the other is empty.',
    N'SCHEMA', N'mq', N'TABLE', N'subscription';

-- The argument of mq_internal.send_changes: keys of the changed rows as JSON, in the order in which they are reported.
CREATE TYPE mq.events AS TABLE (
    n int NOT NULL PRIMARY KEY,
    key_json nvarchar(max) NOT NULL,
    old_key_json nvarchar(max)
);
