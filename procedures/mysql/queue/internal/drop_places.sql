-- drop_places: delete places of a reader in a ring that a newer one stands for.
-- Arguments:   p_type, p_reader ('': low-water marks), p_from_n and p_to_n (rounds), p_from_id and p_to_id
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; passes over places that another claim is deleting: they are few and never read
-- Example:     CALL mq_drop_places('crawl', 'worker-1', 3, 3, 0, 17);

DROP PROCEDURE IF EXISTS mq_drop_places;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_places(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_from_n bigint,
    IN p_to_n bigint,
    IN p_from_id bigint,
    IN p_to_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_places longtext CHARACTER SET utf8mb4;
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
    INTO v_places
    FROM (
        SELECT id FROM mq_ring FORCE INDEX (ring_newest)
        WHERE type = p_type AND reader = p_reader AND n BETWEEN p_from_n AND p_to_n AND after_id BETWEEN p_from_id AND p_to_id
            AND (low_until IS NULL) = (p_reader <> '')
        FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_places IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(v_places, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END//

DELIMITER ;
