-- Dead letters by error: exact counts, and a redrive that finds all of them. See docs/decisions/0029_counts.md.

ALTER TABLE mq.dead ADD COLUMN error_group text COLLATE "C";

COMMENT ON COLUMN mq.dead.error_group IS 'The error as list_errors returns it.';

-- As the function error_group, which does not exist yet.
UPDATE mq.dead SET error_group = rtrim(left(regexp_replace(
    left(split_part(translate(coalesce(error, ''), chr(13), chr(10)), chr(10), 1), 500), '[0-9#]+', '#', 'g'), 200), ' ');

ALTER TABLE mq.dead ALTER COLUMN error_group SET NOT NULL;

CREATE INDEX dead_error ON mq.dead (type, error_group, died_at, id);
