-- The table of topics: which types get the messages that are published to a topic. See docs/decisions/0009_sqlserver.md.

-- prefix: the beginning of the pattern up to its first wildcard, without the dot. A topic is compared only with patterns
-- that have the same beginning. NONCLUSTERED: a clustered key has at most 900 bytes.
CREATE TABLE mq.binding (
    pattern nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    prefix nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT binding_pk PRIMARY KEY NONCLUSTERED (pattern, type)
);

CREATE INDEX binding_prefix ON mq.binding (prefix) INCLUDE (pattern, type);
