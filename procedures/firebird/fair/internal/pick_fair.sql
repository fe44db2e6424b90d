-- pick_fair: take messages of a fair queue: of each priority one per group, or as many as its weight, then the next round.
-- Arguments:   p_type, p_size, p_grouped (the policy), p_take (1: called by take_batch; see pick_grouped)
-- Returns:     id, attempt, and n, which gives the order of the batch
--
-- A round goes from lane to lane. It begins after the lane where the last claim of this priority stopped. Positions are rows
-- of mq_ring, inserted and never updated, as those of a ring. A group whose first message is locked has just been
-- served by another claim, and is passed over. Only when a round has found nothing does the claim look behind locked
-- messages, and so many consumers share a single large group.
--
-- A round may give a lane several turns at once, as many as it would get before the batch is full. n puts them in order.
CREATE OR ALTER PROCEDURE imq_pick_fair (p_type mq_name, p_size integer, p_grouped smallint, p_take smallint)
RETURNS (id bigint, attempt smallint, n integer)
AS
-- Lanes of one round; a batch has at most half as many messages.
DECLARE c_lanes integer = 20000;
DECLARE v_weighted smallint; DECLARE v_deep smallint;
DECLARE v_next mq_lane; DECLARE v_lane mq_lane; DECLARE v_from mq_lane; DECLARE v_start mq_lane; DECLARE v_at mq_lane;
DECLARE v_priority varchar(5) CHARACTER SET ASCII;
DECLARE v_old_n bigint; DECLARE v_n bigint;
DECLARE v_left integer; DECLARE v_turns integer; DECLARE v_arc integer; DECLARE v_before integer;
DECLARE v_lanes integer; DECLARE v_turn integer; DECLARE v_round integer;
DECLARE v_first integer = 0;
DECLARE v_rest integer; DECLARE v_new_rest integer; DECLARE v_found integer; DECLARE v_width integer;
DECLARE v_passed smallint;
BEGIN
    v_left = p_size;
    v_weighted = IIF(EXISTS (SELECT * FROM mq_queue_group WHERE type = :p_type AND weight > 1), 1, 0);
    IF (EXISTS (SELECT * FROM mq_ready AS r WHERE r.type = :p_type AND r.lane IS NULL PLAN (r INDEX (mq_ready_lane)))) THEN
        EXECUTE PROCEDURE imq_set_lanes(p_type, 1, MAXVALUE(2 * p_size, 100));
    v_next = '';
    WHILE (v_left > 0) DO
    BEGIN
        v_lane = NULL;
        SELECT r.lane FROM mq_ready AS r WHERE r.type = :p_type AND r.lane >= :v_next
        PLAN (r ORDER mq_ready_lane)
        ORDER BY r.type, r.lane, r.id
        ROWS 1
        INTO v_lane;
        IF (v_lane IS NULL) THEN
            LEAVE;
        v_priority = LEFT(v_lane, 5);
        v_start = '';
        v_from = v_priority;
        v_rest = 0;
        v_old_n = NULL;
        -- Claims that began at the same position have left the same n: the last lane counts.
        FOR SELECT n, lane, after_id FROM mq_ring WHERE type = :p_type AND consumer = :v_priority
            ORDER BY type DESC, consumer DESC, n DESC, after_id DESC
            INTO v_n, v_lane, v_turn
        DO
        BEGIN
            v_old_n = COALESCE(v_old_n, v_n);
            IF (v_n < v_old_n) THEN
                LEAVE;
            v_at = COALESCE(v_lane, '');
            IF (v_at >= v_start) THEN
            BEGIN
                v_start = v_at;
                v_rest = v_turn;
                v_from = IIF(v_rest > 0, v_start, v_start || ASCII_CHAR(1));
            END
        END
        v_at = NULL;
        v_passed = 0;
        v_turns = 1;
        v_deep = 0;
        v_round = 0;
        WHILE (v_left > 0 AND v_deep <= 2) DO
        BEGIN
            v_found = 0;
            v_width = 0;
            v_before = 0;
            v_arc = 1;
            WHILE (v_arc <= 2 AND v_left > 0) DO
            BEGIN
                v_lanes = 0;
                -- One of the two; the other gets no type and returns nothing.
                FOR SELECT id, attempt, lane, n, turn, rest
                    FROM imq_take_lanes(IIF(:p_grouped = 0, :p_type, NULL), IIF(:v_arc = 1, :v_from, :v_priority),
                        IIF(:v_arc = 1, :v_priority || x'FF', :v_start), IIF(:v_arc = 1, :v_rest, 0), :v_turns, :v_weighted,
                        :v_deep, :v_left)
                    UNION ALL
                    SELECT id, attempt, lane, n, turn, rest
                    FROM imq_pick_grouped(IIF(:p_grouped = 1, :p_type, NULL), :v_left, :p_take, IIF(:v_arc = 1, :v_from, :v_priority),
                        IIF(:v_arc = 1, :v_priority || x'FF', :v_start), IIF(:v_arc = 1, :v_rest, 0), :v_turns)
                    INTO id, attempt, v_lane, v_lanes, v_turn, v_new_rest
                DO
                BEGIN
                    v_at = v_lane;
                    v_passed = IIF(v_arc = 2 OR v_round > 0, 1, 0);
                    v_width = v_width + IIF(v_turn = 0, 1, 0);
                    v_found = v_found + 1;
                    v_left = v_left - 1;
                    n = v_first + (v_round + v_turn) * c_lanes + v_before + v_lanes;
                    SUSPEND;
                END
                v_before = v_before + v_lanes;
                v_arc = v_arc + 1;
            END
            v_round = v_round + v_turns;
            v_rest = 0;
            IF (v_start <> '') THEN
                v_from = v_start || ASCII_CHAR(1);
            v_deep = CASE WHEN v_found > 0 THEN v_deep WHEN p_grouped = 1 THEN 3 ELSE v_deep + 1 END;
            v_turns = IIF(v_found > 0, MAXVALUE(v_left / v_width, 1), v_turns);
        END
        v_first = v_first + v_round * c_lanes;
        IF (v_at IS NOT NULL) THEN
            EXECUTE PROCEDURE imq_save_position(p_type, v_priority, v_old_n, v_passed, v_new_rest, v_at);
        v_next = LPAD(CAST(v_priority AS integer) + 1, 5, '0');
    END
    IF (p_grouped = 1 AND p_take = 1) THEN
        DELETE FROM mq_met;
END
