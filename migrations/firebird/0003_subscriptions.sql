-- The tables of subscriptions: which of the users' tables are watched, and the types that get messages about them.

CREATE SEQUENCE mq_watched_id;

CREATE TABLE mq_watched (
    id integer NOT NULL,
    label mq_name NOT NULL,
    head mq_argument NOT NULL,
    CONSTRAINT mq_watched_pk PRIMARY KEY (id),
    CONSTRAINT mq_watched_label UNIQUE (label)
);

COMMENT ON TABLE mq_watched IS 'Tables whose trigger, MQ_WATCH_ and the id, sends messages to subscriptions; head is how they begin.';

-- Without a foreign key: its check would lock the row of the table, which the triggers read.
CREATE TABLE mq_subscription (
    watched integer NOT NULL,
    action varchar(1) CHARACTER SET ASCII NOT NULL,
    type mq_name NOT NULL,
    topic mq_name NOT NULL,
    CONSTRAINT mq_subscription_pk PRIMARY KEY (watched, action, type, topic),
    CONSTRAINT mq_subscription_one CHECK ((type = '') <> (topic = ''))
);

COMMENT ON TABLE mq_subscription IS 'Inserts (I), updates (U) or deletes (D) in a watched table send messages of these types, or to the types that are bound to these topics; what is not given is empty.';
