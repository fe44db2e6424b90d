-- The tables of subscriptions: the watched tables, and the types that get messages about their changes. See
-- docs/decisions/0012_subscriptions.md.

CREATE TABLE mq.watched (
    label text COLLATE "C" PRIMARY KEY,
    key_names name[] NOT NULL,
    key_types oid[] NOT NULL,
    key_json text NOT NULL
);

COMMENT ON TABLE mq.watched IS 'Watched tables, whose triggers send messages. key_json: the expression for the key of a row r, valid while the key has these columns.';

CREATE TABLE mq.subscription (
    label text COLLATE "C" NOT NULL REFERENCES mq.watched ON DELETE CASCADE,
    action text COLLATE "C" NOT NULL CHECK (action IN ('I', 'U', 'D')),
    type text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    PRIMARY KEY (label, action, type, topic),
    CHECK ((type = '') <> (topic = ''))
);

COMMENT ON TABLE mq.subscription IS 'Inserts, updates or deletes in a watched table send messages to this type, or to the types bound to this topic. Exactly one of type and topic is set; the other is empty.';
