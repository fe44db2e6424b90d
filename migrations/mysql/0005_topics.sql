-- Topics: which types get what is published to them.
-- See docs/decisions/0007_mysql.md.

-- Patterns without a word * or # are found by the primary key, the others are compared one by one.
CREATE TABLE IF NOT EXISTS mq_binding (
    pattern varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    wild tinyint NOT NULL,
    path text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (pattern, type),
    KEY binding_wild (wild)
) ENGINE = InnoDB COMMENT = 'Messages that are published to a topic which matches the pattern are sent to this type. path is what topic_path makes of the pattern.';
