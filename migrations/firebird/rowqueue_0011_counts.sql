-- Dead letters by error: exact counts, and a redrive that finds all of them. n: to estimate how many there are. See
-- docs/decisions/0029_counts.md.

CREATE SEQUENCE mq_dead_n;

ALTER TABLE mq_dead ADD error_group mq_name DEFAULT '';

ALTER TABLE mq_dead ADD error_hash bigint DEFAULT 0;

ALTER TABLE mq_dead ADD n bigint;

COMMENT ON COLUMN mq_dead.error_group IS 'The error as list_errors returns it.';

COMMENT ON COLUMN mq_dead.error_hash IS 'HASH of error_group, which is too long for an index. Different errors may have the same.';

COMMENT ON COLUMN mq_dead.n IS 'The number of this death, without large gaps: estimates count a sample of numbers.';

-- As the function imq_error_group, which does not exist yet.
UPDATE mq_dead SET n = NEXT VALUE FOR mq_dead_n, error_group = TRIM(TRAILING FROM LEFT(
    REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(
    LEFT(REPLACE(LEFT(COALESCE(error, ''), 500), ASCII_CHAR(13), ASCII_CHAR(10)),
        POSITION(ASCII_CHAR(10) IN REPLACE(LEFT(COALESCE(error, ''), 500), ASCII_CHAR(13), ASCII_CHAR(10)) || ASCII_CHAR(10)) - 1)
    , '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
    '##', '#'), '##', '#'), '##', '#'), '##', '#'), '##', '#'), '##', '#'), '##', '#'), '##', '#'), '##', '#'), 200));

UPDATE mq_dead SET error_hash = HASH(error_group);

ALTER TABLE mq_dead ALTER COLUMN error_group SET NOT NULL;

ALTER TABLE mq_dead ALTER COLUMN error_hash SET NOT NULL;

CREATE INDEX mq_dead_error ON mq_dead (type, error_hash, died_at);

CREATE INDEX mq_dead_number ON mq_dead (n);
