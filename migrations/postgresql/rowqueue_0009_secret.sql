-- The secret gets a schema of its own: a grant on all tables of schema mq does not include it. It is also replaced,
-- because whoever had such a grant may know it.

CREATE SCHEMA mq_internal;

COMMENT ON SCHEMA mq_internal IS 'What only the queue''s owner may use.';

ALTER TABLE mq.secret SET SCHEMA mq_internal;

UPDATE mq_internal.secret SET word = concat(gen_random_uuid(), gen_random_uuid());
