-- Keys of two names are NONCLUSTERED: a clustered key has at most 900 bytes. Two names have up to 1,600, and a row that
-- exceeds the limit is an error.

ALTER TABLE mq.group_freed DROP CONSTRAINT group_freed_pk;
ALTER TABLE mq.group_freed ADD CONSTRAINT group_freed_pk PRIMARY KEY NONCLUSTERED (type, group_key, id);

ALTER TABLE mq.bucket DROP CONSTRAINT bucket_pk;
ALTER TABLE mq.bucket ADD CONSTRAINT bucket_pk PRIMARY KEY NONCLUSTERED (type, group_key);
