-- raise_error: raise a numbered error of the contract.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_raise_error(
    IN p_name varchar(200) CHARACTER SET utf8mb4, IN p_detail longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The server cuts messages at 128 characters: the beginning must be enough.
    DECLARE v_message varchar(128) CHARACTER SET utf8mb4 DEFAULT LEFT(CONCAT(p_name, ': ', p_detail), 128);
    DECLARE v_number int DEFAULT CASE p_name
        WHEN 'wrong_isolation' THEN 50001
        WHEN 'invalid_argument' THEN 50002
        WHEN 'wrong_kind' THEN 50003
        WHEN 'queue_not_empty' THEN 50004
        WHEN 'not_found' THEN 50005
        WHEN 'unsuitable_table' THEN 50006
        WHEN 'already_exists' THEN 50007
        WHEN 'lease_lost' THEN 50008
        WHEN 'area_missing' THEN 50009
        WHEN 'cancelled' THEN 50011
    END;
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = v_number, MESSAGE_TEXT = v_message;
END
