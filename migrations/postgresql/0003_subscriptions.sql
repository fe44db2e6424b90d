-- The tables of subscriptions: which of the users' tables are watched, and the types that their changes are sent to. See
-- docs/decisions/0012_subscriptions.md.

CREATE TABLE mq.watched (
    label text COLLATE "C" PRIMARY KEY,
    key_names name[] NOT NULL,
    key_types oid[] NOT NULL,
    key_json text NOT NULL
);

COMMENT ON TABLE mq.watched IS 'Tables whose triggers send messages: key_json makes the key of a row r, as long as the key has these columns.';

CREATE TABLE mq.subscription (
    label text COLLATE "C" NOT NULL REFERENCES mq.watched ON DELETE CASCADE,
    action text COLLATE "C" NOT NULL CHECK (action IN ('I', 'U', 'D')),
    type text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    PRIMARY KEY (label, action, type, topic),
    CHECK ((type = '') <> (topic = ''))
);

COMMENT ON TABLE mq.subscription IS 'Inserts, updates or deletes in a watched table send messages of these types, or to the types that are bound to these topics; what is not given is empty.';
