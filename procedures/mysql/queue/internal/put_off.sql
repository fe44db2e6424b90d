-- put_off: delay messages that a claim has taken from groups without a token, until the group's next token.
-- Arguments:   p_found (from pick_grouped: a JSON array; only those that are late are delayed)
-- Transaction: the caller has locked the policy: set_queue waits for it
--
-- A message waits like a failed message of an ordered queue: promote brings it back and frees its place.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_put_off(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_found longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    UPDATE JSON_TABLE(p_found, '$[*]' COLUMNS (
        id bigint PATH '$[0]', late int PATH '$[8]', rate int PATH '$[9]', seconds int PATH '$[10]', full_at datetime(6) PATH '$[11]'
    )) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    SET m.sent_run_at = COALESCE(m.sent_run_at, m.run_at), m.run_at = j.full_at - INTERVAL j.seconds SECOND
        + INTERVAL (j.seconds * 1000000 + j.rate - 1) DIV j.rate MICROSECOND
    WHERE j.late;
    INSERT INTO mq_delayed (type, run_at, id, priority, attempts)
    SELECT p_type, m.run_at, j.id, m.priority, j.attempt - 1
    FROM JSON_TABLE(p_found, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt smallint PATH '$[1]', late int PATH '$[8]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    WHERE j.late;
END
