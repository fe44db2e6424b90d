-- The table of topics: which types get what is published. See the topics section of docs/procedures.md.

CREATE TABLE mq.binding (
    pattern text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    like_pattern text COLLATE "C" NOT NULL,
    PRIMARY KEY (pattern, type)
);

COMMENT ON TABLE mq.binding IS 'Types that are bound to the topics of a pattern. like_pattern: topics that LIKE rules out need no further test, see topic_types.';
