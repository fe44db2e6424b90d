-- estimate: estimate how many messages of a type one of the queue's tables holds, from a sample.
-- Arguments:   p_table (ready, grouped, due or delayed: the two parts of mq_delayed, or dead), p_type, p_now
-- Returns:     estimate: at least 10,001
-- Transaction: reads only: the first index entries, and 400 messages by their id
--
-- It searches the messages with 400 ids, spread from the lowest to the highest. The share of ids found gives the number.
-- Dead letters have few of the ids, so they are sampled by their own numbers. Only mq_ready has an index that shows the
-- highest id of a type; for other tables the newest id of all types is used.
CREATE OR ALTER PROCEDURE imq_estimate (p_table varchar(7) CHARACTER SET ASCII, p_type mq_name, p_now timestamp)
RETURNS (estimate bigint)
AS
DECLARE c_sample integer = 400;
DECLARE c_ends integer = 100;
DECLARE v_low bigint; DECLARE v_high bigint; DECLARE v_from bigint; DECLARE v_middle bigint; DECLARE v_id bigint;
DECLARE v_i bigint = 0;
DECLARE v_found bigint = 0;
DECLARE v_claimed bigint = 0;
DECLARE v_table varchar(7) CHARACTER SET ASCII;
BEGIN
    v_high = GEN_ID(mq_message_id, 0);
    IF (p_table = 'ready') THEN
    BEGIN
        SELECT MIN(e.id)
        FROM (
            SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type
            PLAN (r ORDER mq_ready_lane) ORDER BY r.type, r.lane, r.id ROWS :c_ends
        ) AS e
        INTO v_low;
        -- A fair queue reads no ids in order.
        v_from = IIF(EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type AND r.lane IS NULL), v_low, v_high);
        WHILE (20 * (v_high - v_from) > v_high - v_low) DO
        BEGIN
            v_middle = v_from + (v_high - v_from) / 2;
            v_id = NULL;
            SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.lane IS NULL AND r.id > :v_middle
            PLAN (r ORDER mq_ready_lane) ORDER BY r.type, r.lane, r.id ROWS 1
            INTO v_id;
            IF (v_id IS NULL) THEN
                v_high = v_middle;
            ELSE
                v_from = v_id;
        END
    END
    ELSE IF (p_table = 'grouped') THEN
        SELECT MIN(e.id)
        FROM (
            SELECT g.id FROM mq_grouped AS g WHERE g.type = :p_type
            PLAN (g ORDER mq_grouped_pk) ORDER BY g.type, g.group_key, g.id ROWS :c_ends
        ) AS e
        INTO v_low;
    ELSE IF (p_table IN ('due', 'delayed')) THEN
        SELECT MIN(e.id)
        FROM (
            SELECT d.id FROM mq_delayed AS d
            WHERE d.type = :p_type AND d.run_at BETWEEN IIF(:p_table = 'due', TIMESTAMP '1900-01-01 00:00:00', :p_now)
                AND IIF(:p_table = 'due', :p_now, TIMESTAMP '9999-12-31 00:00:00')
            PLAN (d ORDER mq_delayed_due) ORDER BY d.type, d.run_at, d.id ROWS :c_ends
        ) AS e
        INTO v_low;
    ELSE
    BEGIN
        v_high = GEN_ID(mq_dead_n, 0);
        SELECT MIN(e.n)
        FROM (
            SELECT o.n FROM mq_dead AS o WHERE o.type = :p_type
            PLAN (o ORDER mq_dead_age) ORDER BY o.type, o.died_at, o.id ROWS :c_ends
        ) AS e
        INTO v_low;
    END
    WHILE (v_i < c_sample) DO
    BEGIN
        -- Irregular steps, but the same in each call: messages of two queues may alternate.
        v_id = v_low + FLOOR((v_i + MOD(v_i * 61803399, 100000000) / 1e8) * (v_high - v_low + 1) / c_sample);
        v_table = NULL;
        IF (p_table = 'dead') THEN
            SELECT 'dead' FROM mq_dead AS e WHERE e.n = :v_id AND e.type = :p_type INTO v_table;
        ELSE
            SELECT CASE WHEN e.id IS NOT NULL THEN 'dead' WHEN d.run_at <= :p_now THEN 'due' WHEN d.run_at > :p_now THEN 'delayed'
                WHEN :p_table = 'grouped' THEN 'grouped' ELSE 'ready' END
            FROM mq_message AS m
            LEFT JOIN mq_dead AS e ON e.id = m.id
            LEFT JOIN mq_delayed AS d ON d.id = m.id
            WHERE m.id = :v_id AND m.type = :p_type
            INTO v_table;
        IF (v_table = p_table) THEN
            v_found = v_found + 1;
        v_i = v_i + 1;
    END
    IF (p_table IN ('ready', 'grouped')) THEN
        -- The sample does not show which messages are claimed.
        v_claimed = imq_count_held(p_type);
    estimate = MAXVALUE(COALESCE(v_found * (v_high - v_low + 1) / c_sample, 0) - v_claimed, 10001);
END
