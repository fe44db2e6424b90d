-- The tables of subscriptions: the watched tables, and the types that get messages about their changes.

CREATE SEQUENCE mq_watched_id;

CREATE TABLE mq_watched (
    id integer NOT NULL,
    label mq_name NOT NULL,
    head mq_argument NOT NULL,
    CONSTRAINT mq_watched_pk PRIMARY KEY (id),
    CONSTRAINT mq_watched_label UNIQUE (label)
);

COMMENT ON TABLE mq_watched IS 'Watched tables, whose triggers send messages. The trigger''s name is MQ_WATCH_ and the id; head: the beginning of its messages.';

-- No foreign key: its check would lock the row of mq_watched, which the triggers read.
CREATE TABLE mq_subscription (
    watched integer NOT NULL,
    action varchar(1) CHARACTER SET ASCII NOT NULL,
    type mq_name NOT NULL,
    topic mq_name NOT NULL,
    CONSTRAINT mq_subscription_pk PRIMARY KEY (watched, action, type, topic),
    CONSTRAINT mq_subscription_one CHECK ((type = '') <> (topic = ''))
);

COMMENT ON TABLE mq_subscription IS 'Inserts (I), updates (U) or deletes (D) in a watched table send messages to this type, or to the types bound to this topic. Exactly one of type and topic is set; the other is empty.';
