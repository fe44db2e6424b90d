-- lower_mark: make the next claim a full scan, if messages became ready below a low-water mark.
CREATE OR ALTER PROCEDURE imq_lower_mark (p_type mq_name)
AS
DECLARE v_n bigint;
BEGIN
    SELECT n FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1 INTO v_n;
    IF (v_n IS NOT NULL) THEN
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (:p_type, :v_n + 2, -32768, '1900-01-01', 0, '1900-01-01', '1900-01-01');
END
