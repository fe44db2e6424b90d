-- Dead letters by error: exact counts, and a redrive that finds all of them. n: to estimate how many there are. See
-- docs/decisions/0029_counts.md.

-- A view of earlier versions.
DROP VIEW IF EXISTS mq_error_group;

-- error_group: the first line, with # for each run of digits, without trailing blanks. A generated column, because some
-- servers refuse stored functions. The script of the installation may run twice, and MySQL has no ADD COLUMN IF NOT EXISTS.
SET @mq_statement = IF(
    EXISTS (SELECT * FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'mq_dead' AND column_name = 'error_group'),
    'DO 0',
    'ALTER TABLE mq_dead
        ADD COLUMN error_group varchar(200) CHARACTER SET utf8mb4
            COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
            GENERATED ALWAYS AS (TRIM(TRAILING '' '' FROM LEFT(REGEXP_REPLACE(SUBSTRING_INDEX(SUBSTRING_INDEX(
                LEFT(COALESCE(error, ''''), 500), CHAR(10 USING utf8mb4), 1), CHAR(13 USING utf8mb4), 1),
                ''[0-9#]+'', ''#''), 200))) STORED,
        ADD COLUMN n bigint NOT NULL AUTO_INCREMENT,
        ADD KEY dead_error (type, error_group, died_at, id),
        ADD KEY dead_n (n)'
);

PREPARE mq_statement FROM @mq_statement;

EXECUTE mq_statement;

DEALLOCATE PREPARE mq_statement;
