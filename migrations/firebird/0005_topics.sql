-- The table of topics: which types get what is published. See the topics section of docs/procedures.md.

CREATE TABLE mq_binding (
    pattern mq_name NOT NULL,
    type mq_name NOT NULL,
    like_pattern varchar(500) CHARACTER SET UTF8 NOT NULL,
    CONSTRAINT mq_binding_pk PRIMARY KEY (pattern, type)
);

COMMENT ON TABLE mq_binding IS 'Types that are bound to the topics of a pattern. like_pattern: topics that LIKE rules out need no further test, see topic_types.';
