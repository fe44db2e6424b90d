-- Topics: which queues get the messages that are published to them. See docs/decisions/0009_sqlserver.md.

-- prefix is what the pattern begins with up to its first wildcard, without the dot: a topic is compared only with the patterns that
-- begin as it does. NONCLUSTERED: a clustered key has 900 bytes at most.
CREATE TABLE mq.binding (
    pattern nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    prefix nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT binding_pk PRIMARY KEY NONCLUSTERED (pattern, type)
);

CREATE INDEX binding_prefix ON mq.binding (prefix) INCLUDE (pattern, type);
