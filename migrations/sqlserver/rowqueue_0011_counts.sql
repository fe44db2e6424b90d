-- Dead letters by error: exact counts, and a redrive that finds all of them. n: to estimate how many there are. See
-- docs/decisions/0029_counts.md.

-- error_group: the error as list_errors returns it. n: the number of this death, without large gaps.
ALTER TABLE mq.dead ADD
    error_group nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT dead_error_group DEFAULT N'';

ALTER TABLE mq.dead ADD
    n bigint IDENTITY (1, 1) NOT NULL;

-- As the function error_group, which does not exist yet, but cut at 200 UTF-16 units: longer first lines with emoji of old dead
-- letters make errors of their own.
UPDATE mq.dead SET error_group = RTRIM(LEFT(REPLACE(REPLACE(REPLACE(
    REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(
        LEFT(LEFT(REPLACE(CONCAT(LEFT(error, 2000), NCHAR(10)) COLLATE Latin1_General_100_BIN2, NCHAR(13), NCHAR(10)),
            CHARINDEX(NCHAR(10), REPLACE(CONCAT(LEFT(error, 2000), NCHAR(10)) COLLATE Latin1_General_100_BIN2, NCHAR(13), NCHAR(10))) - 1) COLLATE Latin1_General_100_BIN2, 500) COLLATE Latin1_General_100_BIN2,
        N'0', N'#'), N'1', N'#'), N'2', N'#'), N'3', N'#'), N'4', N'#'), N'5', N'#'), N'6', N'#'), N'7', N'#'), N'8', N'#'),
        N'9', N'#'),
    N'#', NCHAR(13) + NCHAR(10)), NCHAR(10) + NCHAR(13), N''), NCHAR(13) + NCHAR(10), N'#')
    COLLATE Latin1_General_100_BIN2, 200));

CREATE INDEX dead_error ON mq.dead (type, error_group, died_at, id);

CREATE INDEX dead_n ON mq.dead (n);
