-- new_key: a batch key that nobody can guess.
-- Arguments:   none
-- Returns:     p_key: 16 random bytes, written as a UUID
-- Errors:      none
-- Transaction: reads nothing
-- Example:     CALL mq_new_key(v_key);

DROP PROCEDURE IF EXISTS mq_new_key;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_new_key(
    OUT p_key varchar(36) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- UUID() alone is a clock and a counter that every session sees. MariaDB before 10.10 has no random bytes: there the
    -- session's random numbers hide the rest, see docs/operate/security.md.
    DECLARE v_random varchar(64) CHARACTER SET ascii DEFAULT LOWER(COALESCE(
        /*!80000 HEX(RANDOM_BYTES(16)), */ /*M!101001 HEX(RANDOM_BYTES(16)), */ SHA2(CONCAT(UUID(), RAND(), RAND()), 256)));
    SET p_key = CONCAT_WS('-', LEFT(v_random, 8), SUBSTRING(v_random, 9, 4), SUBSTRING(v_random, 13, 4),
        SUBSTRING(v_random, 17, 4), SUBSTRING(v_random, 21, 12));
END//

DELIMITER ;
