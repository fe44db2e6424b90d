-- The table of topics: which types get the messages that are published to a topic. See the topics section of
-- docs/reference/procedures.md.

CREATE TABLE mq_binding (
    pattern mq_name NOT NULL,
    type mq_name NOT NULL,
    like_pattern varchar(500) CHARACTER SET UTF8 NOT NULL,
    CONSTRAINT mq_binding_pk PRIMARY KEY (pattern, type)
);

COMMENT ON TABLE mq_binding IS 'Types that are bound to the topics of a pattern. like_pattern: a first test with LIKE, which excludes most topics; see topic_types.';
