-- The table of topics: which types get the messages that are published to a topic. See docs/decisions/0007_mysql.md.

-- Patterns without * and # are found by the primary key; the others are compared one by one.
CREATE TABLE IF NOT EXISTS mq_binding (
    pattern varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    wild tinyint NOT NULL,
    path text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (pattern, type),
    KEY binding_wild (wild)
) ENGINE = InnoDB COMMENT = 'Types that are bound to the topics of a pattern. path: the result of topic_path for the pattern.';
