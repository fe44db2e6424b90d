-- The table of topics: which types get the messages that are published to a topic. See the topics section of
-- docs/reference/procedures.md.

CREATE TABLE mq.binding (
    pattern text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    like_pattern text COLLATE "C" NOT NULL,
    PRIMARY KEY (pattern, type)
);

COMMENT ON TABLE mq.binding IS 'Types that are bound to the topics of a pattern. like_pattern: a first test with LIKE, which excludes most topics; see topic_types.';
