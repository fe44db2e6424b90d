-- mark_rows: write the changes listed in mq_polled_write to the user's table; a row that cannot be set to done has failed.
-- Arguments:   p_name; in mq_polled_write: id, kind and retry (see settle_rows)
-- Returns:     nothing; in mq_polled_write: outcome and error (see write_rows)
CREATE OR ALTER PROCEDURE imq_mark_rows (p_name mq_name)
AS
DECLARE v_status smallint; DECLARE v_has_active smallint;
DECLARE v_on_complete varchar(6) CHARACTER SET ASCII;
DECLARE v_max integer;
DECLARE v_again integer = 1;
DECLARE v_id bigint;
DECLARE v_kind varchar(1) CHARACTER SET ASCII;
DECLARE v_retry integer;
DECLARE v_attempts smallint; DECLARE v_active smallint;
BEGIN
    SELECT IIF(status_column IS NULL, 0, 1), IIF(active_value IS NULL, 0, 1), on_complete, max_attempts
    FROM mq_polled WHERE name = :p_name
    INTO v_status, v_has_active, v_on_complete, v_max;
    WHILE (v_again = 1) DO
    BEGIN
        -- In a table without a status the only write is DELETE.
        FOR SELECT w.id, w.kind, w.retry, p.attempts, p.active
            FROM mq_polled_write AS w JOIN mq_polled_row AS p ON p.id = w.id
            WHERE w.outcome IS NULL
            INTO v_id, v_kind, v_retry, v_attempts, v_active
        DO
            UPDATE mq_polled_write
            SET from_status = CASE
                    WHEN :v_kind = 'T' AND :v_active = 0 THEN 'E'
                    WHEN :v_active = 1 AND :v_has_active = 1 THEN 'A'
                    ELSE 'R' END,
                to_status = CASE
                    WHEN :v_kind = 'D' THEN IIF(:v_on_complete = 'delete', 'X', IIF(:v_status = 1, 'D', NULL))
                    WHEN :v_status = 0 THEN NULL
                    WHEN :v_kind = 'F' AND (:v_retry = -1 OR :v_attempts >= :v_max) THEN 'E'
                    WHEN :v_kind = 'T' THEN IIF(:v_active = 1 AND :v_has_active = 0, NULL, 'R')
                    WHEN :v_active = 1 AND :v_has_active = 1 THEN 'R'
                    ELSE 'L' END
            WHERE id = :v_id;
        EXECUTE PROCEDURE imq_write_rows(p_name);
        -- A row that could not be set to done has failed.
        v_again = 0;
        FOR SELECT id FROM mq_polled_write WHERE kind = 'D' AND outcome = 'X' INTO v_id DO
        BEGIN
            UPDATE mq_polled_write SET kind = 'F', retry = NULL, outcome = NULL WHERE id = :v_id;
            v_again = 1;
        END
        IF (v_again = 1) THEN
            UPDATE mq_polled_write SET outcome = 'W' WHERE outcome IS NULL AND kind <> 'F';
    END
END
