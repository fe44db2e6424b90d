-- The tables of subscriptions: the watched tables, and the types that get messages about their changes. See
-- docs/decisions/0012_subscriptions.md.

CREATE TABLE IF NOT EXISTS mq_watched (
    label varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    PRIMARY KEY (label)
) ENGINE = InnoDB COMMENT = 'Watched tables, whose triggers send messages.';

CREATE TABLE IF NOT EXISTS mq_subscription (
    label varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    action char(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    topic varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    path text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (label, action, type, topic),
    CHECK (action IN ('I', 'U', 'D')),
    CHECK ((type = '') <> (topic = ''))
) ENGINE = InnoDB COMMENT = 'Inserts, updates or deletes in a watched table send messages to this type, or to the types bound to this topic. Exactly one of type and topic is set; the other is empty. path: the result of topic_path for the topic.';
