-- lower_mark: make the next claim a full scan, if messages became ready below a low-water mark.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lower_mark(IN p_type varchar(200) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_n bigint;
    SELECT n INTO v_n FROM mq_mark FORCE INDEX (mark_newest) WHERE type = p_type ORDER BY n DESC LIMIT 1;
    IF v_n IS NOT NULL THEN
        INSERT INTO mq_mark (n, scanned_at, promoted_to, type, places)
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        VALUES (v_n + 2, '1000-01-01', '1000-01-01', p_type, '[]');
    END IF;
END
