-- revive_rows: make dead entries due again, with their attempts set back to 0.
-- Arguments:   p_name, p_ready and p_gone (JSON arrays of the entries whose rows are ready, and of those whose rows are
--              gone; NULL: none)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_revive_rows(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_ready longtext CHARACTER SET utf8mb4,
    IN p_gone longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_use_polled(p_name, 'change');
    DELETE e FROM JSON_TABLE(COALESCE(p_gone, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
    STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
    WHERE e.name = p_name AND e.state = 'E';
    UPDATE JSON_TABLE(COALESCE(p_ready, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
    STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
    SET e.state = 'N', e.attempts = 0, e.run_at = UTC_TIMESTAMP(6), e.active = 0
    WHERE e.name = p_name AND e.state = 'E';
END
