-- take_lanes: delete the first messages of each lane of a fair queue, and skip messages that another transaction has locked.
-- Arguments:   p_from and p_until (the first and the last lane, as bytes), p_rest (messages of a turn that p_from may still
--              have; 0: it begins a turn), p_turns (turns of each lane), p_weighted (1: groups have weights), p_deep (0: the
--              first message of a lane only; if it is locked, its group is being served; 1: try others as well, and jump
--              ahead as in take_ready; 2: try every message), p_size (maximum number of messages)
-- Returns:     the deleted messages; n: number of the lane; turn: from 0 on; rest: of this turn
--
-- A loose index scan: the cursor reads on while lanes are short. After the last turn of a long lane it is opened again at the
-- next possible lane, which has one more byte, 1: names contain no byte 0.
CREATE OR ALTER PROCEDURE imq_take_lanes (
    p_type mq_name, p_from mq_lane, p_until mq_lane, p_rest integer, p_turns integer, p_weighted smallint,
    p_deep smallint, p_size integer
)
RETURNS (id bigint, attempt smallint, lane mq_lane, n integer, turn integer, rest integer)
AS
DECLARE c_longest integer = 1024;
DECLARE v_from varchar(821) CHARACTER SET OCTETS;
DECLARE v_next mq_lane; DECLARE v_lane mq_lane;
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_group_key mq_name;
DECLARE v_weight integer = 1;
DECLARE v_limit integer; DECLARE v_taken integer; DECLARE v_mine integer; DECLARE v_step integer;
DECLARE v_over integer;
BEGIN
    n = 0;
    v_from = p_from;
    WHILE (v_from IS NOT NULL AND p_size > 0) DO
    BEGIN
        v_next = NULL;
        FOR SELECT r.lane, r.id, r.attempts + 1, r.RDB$DB_KEY
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.lane >= :v_from
            PLAN (r ORDER mq_ready_lane)
            ORDER BY r.type, r.lane, r.id
            INTO v_lane, id, attempt, v_place
        DO
        BEGIN
            IF (v_lane IS DISTINCT FROM lane) THEN
            BEGIN
                IF (v_lane > p_until) THEN
                    EXIT;
                lane = v_lane;
                n = n + 1;
                v_taken = 0;
                v_step = 1;
                v_over = 0;
                IF (p_weighted = 1) THEN
                BEGIN
                    v_group_key = SUBSTRING(lane FROM 6);
                    v_weight = COALESCE((SELECT weight FROM mq_queue_group WHERE type = :p_type AND group_key = :v_group_key), 1);
                END
                v_limit = IIF(p_rest > 0 AND lane = p_from, p_rest, p_turns * v_weight);
            END
            IF (v_taken >= v_limit) THEN
            BEGIN
                v_next = lane;
                LEAVE;
            END
            IF (v_over > 0) THEN
                v_over = v_over - 1;
            ELSE
            BEGIN
                v_mine = 0;
                BEGIN
                    DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :id AND type = :p_type /*!5 SKIP LOCKED */
                    RETURNING 1 INTO v_mine;
                    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                        v_mine = 0;
                END
                IF (v_mine = 1) THEN
                BEGIN
                    turn = v_taken / v_weight;
                    v_taken = v_taken + 1;
                    rest = MOD(v_limit - v_taken, v_weight);
                    v_step = 1;
                    SUSPEND;
                    p_size = p_size - 1;
                    IF (p_size <= 0) THEN
                        EXIT;
                END
                ELSE IF (p_deep = 0) THEN
                    v_taken = v_limit;
                ELSE IF (p_deep = 1) THEN
                BEGIN
                    v_over = v_step - 1;
                    v_step = MINVALUE(2 * v_step, c_longest);
                END
            END
        END
        v_from = v_next || ASCII_CHAR(1);
    END
END
