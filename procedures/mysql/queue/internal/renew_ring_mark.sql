-- renew_ring_mark: write the low-water mark of a round-robin claim, and delete the older ones.
-- Arguments:   p_type, p_n (the number of the mark that the claim read; NULL: there was none), p_after_id (no message up to
--              this id is ready), p_low_until (how long the mark holds), p_promoted_to (no message due before this time is
--              delayed)
-- Transaction: joins the caller's; never waits for another claim

DROP PROCEDURE IF EXISTS imq_renew_ring_mark;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_renew_ring_mark(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_n bigint,
    IN p_after_id bigint,
    IN p_low_until datetime(6),
    IN p_promoted_to datetime(6)
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
    DECLARE c_old int DEFAULT 20;
    DECLARE v_marks longtext CHARACTER SET utf8mb4;
    INSERT INTO mq_ring (n, after_id, low_until, promoted_to, type, reader)
    VALUES (COALESCE(p_n, 0) + 1, p_after_id, p_low_until, p_promoted_to, p_type, '');
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
    INTO v_marks
    FROM (
        SELECT id FROM mq_ring FORCE INDEX (ring_newest)
        WHERE type = p_type AND reader = '' AND n BETWEEN IF(p_n % 100 = 0, 0, p_n - c_old) AND p_n AND low_until >= '1000-01-01'
        FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_marks IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(v_marks, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END//

DELIMITER ;
