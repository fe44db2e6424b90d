-- lock_polled: lock a polling table's row; claims of the table, and changes to its settings, wait for each other.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lock_polled(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    SELECT name INTO v_name FROM mq_polled WHERE name = p_name FOR UPDATE;
    IF v_name IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('name: no table is adopted as ', LEFT(p_name, 80)));
    END IF;
END
