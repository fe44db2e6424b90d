-- renew_marks: write the low-water marks of a claim, and delete the older ones.
-- Arguments:   p_type, p_n (the number of the marks that the claim read; NULL: there were none), p_scanned_at (the last
--              full scan), p_promoted_to (no message due before this time is delayed), p_places (the marks that the claim
--              read: a JSON array of [priority, run_at, id]), p_items (the messages that the claim found: a JSON array of
--              [id, attempt, priority, run_at], or NULL), p_at_least and p_at_most (bounds for the run_at of the marks of
--              all other priorities)
--
-- The first row found of a priority becomes its mark. A priority without found rows keeps its mark. Marks are inserted,
-- never updated: the newest set is the first index entry, before all dead ones.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_renew_marks(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_n bigint, IN p_scanned_at datetime(6),
    IN p_promoted_to datetime(6), IN p_places longtext CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    IN p_at_least datetime(6), IN p_at_most datetime(6)
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Each mark costs one more statement in a claim that finds too few messages. Priorities after the eighth get no mark.
    DECLARE c_marks int DEFAULT 8;
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
    DECLARE c_old int DEFAULT 20;
    DECLARE v_places, v_marks longtext CHARACTER SET utf8mb4;
    SELECT CONCAT('[', GROUP_CONCAT('[', l.priority, ',"', l.run_at, '",', l.id, ']' ORDER BY l.priority), ']')
    INTO v_places
    FROM (
        SELECT p.priority, p.run_at, p.id
        FROM (
            SELECT u.*, ROW_NUMBER() OVER (PARTITION BY u.priority ORDER BY u.found DESC, u.run_at, u.id) AS nth
            FROM (
                SELECT f.priority, f.run_at, f.id, 1 AS found
                FROM JSON_TABLE(COALESCE(p_items, '[]'), '$[*]' COLUMNS (
                    id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]'
                )) AS f
                UNION ALL
                SELECT m.priority, LEAST(GREATEST(m.run_at, p_at_least), p_at_most),
                    IF(m.run_at >= p_at_least AND m.run_at < p_at_most, m.id, 0), 0
                FROM JSON_TABLE(p_places, '$[*]' COLUMNS (
                    priority smallint PATH '$[0]', run_at datetime(6) PATH '$[1]', id bigint PATH '$[2]'
                )) AS m
            ) AS u
        ) AS p
        WHERE p.nth = 1
        ORDER BY p.priority
        LIMIT c_marks
    ) AS l;
    INSERT INTO mq_mark (n, scanned_at, promoted_to, type, places)
    VALUES (COALESCE(p_n, 0) + 1, p_scanned_at, p_promoted_to, p_type, COALESCE(v_places, '[]'));
    -- Skip marks that another claim is deleting. Leftover marks are few and never read; a later claim deletes them.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']') INTO v_marks
    FROM (
        SELECT id FROM mq_mark FORCE INDEX (mark_newest)
        WHERE type = p_type AND n BETWEEN IF(p_n % 100 = 0, 0, p_n - c_old) AND p_n AND scanned_at >= '1000-01-01'
        FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_marks IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(v_marks, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_mark AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END
