-- The table of topics: which types get the messages that are published to a topic. See docs/decisions/0009_sqlserver.md.

-- A topic is compared only with patterns that have the same beginning. NONCLUSTERED: a clustered key has at most 900
-- bytes.
CREATE TABLE mq.binding (
    pattern nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    prefix nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT binding_pk PRIMARY KEY NONCLUSTERED (pattern, type)
);

EXEC sys.sp_addextendedproperty N'MS_Description', N'Types that are bound to the topics of a pattern. prefix: the beginning of the pattern up to its first wildcard, without the dot.',
    N'SCHEMA', N'mq', N'TABLE', N'binding';

CREATE INDEX binding_prefix ON mq.binding (prefix) INCLUDE (pattern, type);
