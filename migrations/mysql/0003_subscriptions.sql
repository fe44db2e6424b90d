-- The tables of subscriptions: which of the users' tables are watched, and which changes send which messages.
-- See docs/decisions/0012_subscriptions.md.

CREATE TABLE IF NOT EXISTS mq_watched (
    label varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    PRIMARY KEY (label)
) ENGINE = InnoDB COMMENT = 'Tables whose triggers send messages to subscriptions.';

CREATE TABLE IF NOT EXISTS mq_subscription (
    label varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    action char(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    topic varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    path text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (label, action, type, topic),
    CHECK (action IN ('I', 'U', 'D')),
    CHECK ((type = '') <> (topic = ''))
) ENGINE = InnoDB COMMENT = 'Inserts, updates or deletes in a watched table send messages of these types, or to the types that are bound to these topics; what is not given is empty. path is what topic_path makes of the topic.';
